use super::*;

#[test]
fn times() {
    let check =
        |text, expected| assert_eq!(Limit::<Duration>::read(text), Ok(Limit::AtMost(expected)), "{text}");
    check("10s", Duration::from_secs(10));
    check("10", Duration::from_secs(10));
    check("0.5", Duration::from_millis(500));
    check("500ms", Duration::from_millis(500));
    check("2m", Duration::from_secs(120));
    check("1h", Duration::from_secs(3600));
    check("0", Duration::ZERO);
    assert_eq!(Limit::<Duration>::read("none"), Ok(Limit::Unlimited));
    for wrong in ["", "s", "-1s", "1x", "1.2.3", "inf", "nan", "99999999999999999999999h"] {
        assert!(Limit::<Duration>::read(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn sizes() {
    let check = |text, expected| assert_eq!(Limit::<u64>::read(text), Ok(Limit::AtMost(expected)), "{text}");
    check("512M", 512 << 20);
    check("2G", 2 << 30);
    check("2GiB", 2 << 30);
    check("1.5gb", 3 << 29);
    check("4096", 4096);
    check("4096B", 4096);
    check("1K", 1024);
    check("1T", 1 << 40);
    assert_eq!(Limit::<u64>::read("none"), Ok(Limit::Unlimited));
    for wrong in ["", "G", "-1G", "1X", "1iB", "99999999999999T"] {
        assert!(Limit::<u64>::read(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn abstractions() {
    assert_eq!(BufferDomain::read("set"), Ok(BufferDomain::Set));
    assert_eq!(BufferDomain::read("multiset"), Ok(BufferDomain::Multiset));
    assert_eq!(BufferDomain::read("partial:0"), Ok(BufferDomain::Partial(0)));
    assert_eq!(BufferDomain::read("partial:64"), Ok(BufferDomain::Partial(64)));
    for wrong in ["", "sets", "partial", "partial:", "partial:-1", "partial:65", "partial:x"] {
        assert!(BufferDomain::read(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn sizes_of_buffers() {
    let check = |text, all, single: &[(&str, u32)]| {
        let single = single.iter().map(|(name, k)| (name.to_string(), *k)).collect();
        assert_eq!(Sizes::read(text), Ok(Sizes { all, single }), "{text}");
    };
    check("2", 2, &[]);
    check("0", 0, &[]);
    check("x=2,y=1", 1, &[("x", 2), ("y", 1)]);
    check("2, x = 3", 2, &[("x", 3)]);
    for wrong in ["", "x", "-1", "+1", "x=", "x=-1", "1,2", "x=1,2", "99999999999"] {
        assert!(Sizes::read(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn constants() {
    let check = |text, value: Option<&str>| {
        assert_eq!(Define::read(text), Ok(Define("N".to_string(), value.map(str::to_string))), "{text}");
    };
    check("N=4", Some("4"));
    check("N = -4", Some("-4"));
    check("N", None);
    check("N=", Some(""));
    assert!(Define::read("=4").is_err() && Define::read("").is_err());
}
