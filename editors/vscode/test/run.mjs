// Starts a real VS Code in a browser (code-server), with the extension and some examples, does what a user would do, and keeps what there is to see.
//
//   npm run try
//
// Needs code-server, puppeteer-core, a Chromium and the command: see README.md. Ends with 1 if something is not there that should be.
import { execFileSync, spawn } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const here = path.dirname(fileURLToPath(import.meta.url));
const root = path.resolve(here, '../../..');
const { default: puppeteer } = await import('puppeteer-core');
const found = (names) => names.find((name) => name && fs.existsSync(name));
const server = found([process.env.CODE_SERVER, path.resolve(here, '../node_modules/.bin/code-server'), '/usr/bin/code-server']);
const chromium = found([process.env.FENCEWRIGHT_CHROMIUM, '/usr/bin/chromium', '/usr/bin/google-chrome']);
const command = found([process.env.FENCEWRIGHT, path.join(root, 'target/release/fencewright'), path.join(root, 'target/debug/fencewright')]);
const pictures = path.resolve(process.env.PICTURES || path.join(here, 'pictures'));
const port = Number(process.env.PORT || 8931);
for (const [what, where] of Object.entries({ 'code-server (CODE_SERVER)': server, 'Chromium (FENCEWRIGHT_CHROMIUM)': chromium, 'the command (FENCEWRIGHT)': command })) {
  if (!where) {
    console.error(`there is no ${what}`);
    process.exit(2);
  }
}

const pause = (milliseconds) => new Promise((done) => setTimeout(done, milliseconds));
let failures = 0;
function check(what, holds, more = '') {
  console.log(`${holds ? 'ok  ' : 'BAD '} ${what}${more ? `: ${more}` : ''}`);
  failures += holds ? 0 : 1;
}

const scratch = fs.mkdtempSync(path.join(os.tmpdir(), 'fencewright-vscode-'));
const folder = path.join(scratch, 'programs');
fs.mkdirSync(folder);
for (const name of ['dekker.fw', 'bakery.fenced.fw', 'c/peterson.c']) {
  fs.copyFileSync(path.join(root, 'examples', name), path.join(folder, path.basename(name)));
}
const settings = {
  'fencewright.path': command,
  'fencewright.timeout': 30,
  'workbench.colorTheme': process.env.THEME || 'Default Dark Modern',
  'workbench.startupEditor': 'none',
  'editor.minimap.enabled': false,
  'security.workspace.trust.enabled': false,
  'telemetry.telemetryLevel': 'off',
  'extensions.autoCheckUpdates': false,
};
const data = path.join(scratch, 'data');
fs.mkdirSync(path.join(data, 'User'), { recursive: true });
fs.writeFileSync(path.join(data, 'User/settings.json'), JSON.stringify(settings));
const common = ['--user-data-dir', data, '--extensions-dir', path.join(scratch, 'extensions')];
const vsix = fs.readdirSync(path.resolve(here, '..')).find((name) => name.endsWith('.vsix'));
if (!vsix) {
  console.error('there is no .vsix: `npm run package` makes one');
  process.exit(2);
}
execFileSync(server, [...common, '--install-extension', path.resolve(here, '..', vsix)], { stdio: 'inherit' });
const arguments_ = [...common, '--auth', 'none', '--bind-addr', `127.0.0.1:${port}`, '--disable-telemetry', '--disable-update-check', '--disable-workspace-trust', folder];
const said = [];
let code;
function start() {
  code = spawn(server, arguments_, { stdio: ['ignore', 'pipe', 'pipe'] });
  code.stdout.on('data', (text) => said.push(String(text)));
  code.stderr.on('data', (text) => said.push(String(text)));
}
start();
const browser = await puppeteer.launch({ executablePath: chromium, args: ['--no-sandbox', '--disable-gpu'], protocolTimeout: 600_000, defaultViewport: { width: 1700, height: 1000 } });

let page;
async function picture(name) {
  fs.mkdirSync(pictures, { recursive: true });
  await page.screenshot({ path: path.join(pictures, `${name}.png`) });
}

/** Waits until something in the page is so, and gives it. */
async function until(what, look, argument, limit = 180_000) {
  const start = Date.now();
  for (;;) {
    const value = await page.evaluate(look, argument).catch(() => undefined);
    if (value) return value;
    if (Date.now() - start > limit) {
      await picture('missing');
      throw new Error(`${what} does not come`);
    }
    await pause(100);
  }
}

async function open(name) {
  const at = await until(`${name} in the list of files`, (name) => {
    const row = [...document.querySelectorAll('.explorer-folders-view .monaco-list-row')].find((row) => row.textContent.includes(name));
    if (!row) return undefined;
    const { left, top, height } = row.getBoundingClientRect();
    return [left + 60, top + height / 2];
  }, name);
  await page.mouse.click(...at, { clickCount: 2 });
  await until(`the tab of ${name}`, (name) => [...document.querySelectorAll('.tab.active')].some((tab) => tab.textContent.includes(name)), name);
  await pause(1000);
}

async function run(title) {
  await page.keyboard.press('F1');
  await page.waitForSelector('.quick-input-widget:not(.hidden) input');
  await pause(300);
  await page.keyboard.type(title);
  await until(title, (title) => [...document.querySelectorAll('.quick-input-list .monaco-list-row')].some((row) => row.textContent.includes(title)), title);
  await pause(300);
  await page.keyboard.press('Enter');
}

/** Closes the panel that has the focus. */
async function close() {
  await page.click('.editor-group-container.active .tab.active .codicon-close');
  await pause(1000);
}

const lenses = () => [...document.querySelectorAll('.codelens-decoration')].map((lens) => lens.textContent.trim()).filter((text) => text);
const lens = (words) => until(`a lens "${words}"`, (words) => [...document.querySelectorAll('.codelens-decoration a')].map((a) => a.textContent).find((text) => text.includes(words)), words);
async function click(words) {
  const at = await page.evaluate((words) => {
    const link = [...document.querySelectorAll('.codelens-decoration a')].find((a) => a.textContent.includes(words));
    const { left, top, width, height } = link.getBoundingClientRect();
    return [left + width / 2, top + height / 2];
  }, words);
  await page.mouse.click(...at);
}

/** The frame that shows a page of Fencewright: two frames deep in the panel that can be seen. */
async function panel(selector) {
  for (let n = 0; n < 600; n++) {
    for (const outer of await page.$$('iframe.webview')) {
      const box = await outer.boundingBox();
      const middle = box && box.width > 0 && (await outer.contentFrame());
      const inner = middle && (await middle.$('iframe#active-frame').catch(() => null));
      const frame = inner && (await inner.contentFrame());
      if (frame && (await frame.$(selector).catch(() => null))) return frame;
    }
    await pause(200);
  }
  await picture('missing');
  throw new Error(`${selector} does not come`);
}

/** Where a word stands on the screen: the nth place where it is written. */
async function place(word, n = 0) {
  return page.evaluate((word, n) => {
    const spans = [...document.querySelectorAll('.editor-instance .view-line span span')].filter((span) => span.textContent.trim() === word);
    const { left, top, width, height } = spans[n].getBoundingClientRect();
    return [left + width / 2, top + height / 2];
  }, word, n);
}

async function hover(word, n = 0) {
  const [x, y] = await place(word, n);
  await page.mouse.move(x - 2, y);
  await page.mouse.move(x, y);
  const text = await until(`the hover of ${word}`, () => {
    const shown = [...document.querySelectorAll('.monaco-hover:not(.hidden) .hover-contents')].map((box) => box.innerText).join('\n');
    return shown && !shown.includes('Loading') && shown;
  });
  await pause(300);
  return text;
}

/** One part of the trial; if it fails, the others are tried nevertheless. */
async function part(name, steps) {
  if (process.env.ONLY && !process.env.ONLY.split(',').includes(name)) return;
  await steps().catch((error) => check(`${name}: ${error.stack}`, false));
}

const complaints = [];
try {
  for (let n = 0; ; n++) {
    const there = await fetch(`http://127.0.0.1:${port}/healthz`).then(() => true, () => false);
    if (there) break;
    // On a machine that is busy, it gives itself up while it starts.
    if (code.exitCode !== null) start();
    if (n > 900) throw new Error(`code-server does not start: ${said.join('')}`);
    await pause(200);
  }
  page = await browser.newPage();
  page.on('console', (message) => {
    if (/Content.Security|Refused to/i.test(message.text())) complaints.push(message.text());
  });
  await page.goto(`http://127.0.0.1:${port}/?folder=${folder}`, { waitUntil: 'domcontentloaded', timeout: 300_000 });
  await page.waitForSelector('.monaco-workbench', { timeout: 300_000 });
  await pause(3000);

  await part('a violation', async () => {
    await open('dekker.fw');
    await lens('check under tso');
    await picture('dekker-opened');
    await run('Fencewright: Check Now');
    await lens('unsafe under tso');
    await pause(1500);
    check('lenses', true, (await page.evaluate(lenses)).join(' | '));
    check('a squiggle', await page.evaluate(() => document.querySelectorAll('.squiggly-error').length > 0));
    await picture('dekker-violated');
    await run('View: Toggle Problems');
    await pause(1500);
    await picture('dekker-problems');
    await run('View: Toggle Problems');
    await click('show the execution');
    const frame = await panel('.viewer');
    await pause(1500);
    await picture('dekker-page');
    for (let n = 0; n < 4; n++) {
      await page.keyboard.press('ArrowRight');
      await pause(200);
    }
    await pause(700);
    check('the arrow keys go from step to step', (await frame.$eval('.viewer', (viewer) => viewer.dataset.step)) === '4');
    const shown = await frame.$eval('.line.current .number', (line) => line.textContent);
    const marked = await page.evaluate(() => {
      const line = document.querySelector('.editor-instance .view-overlays [class*="ced-"]');
      return line && line.getBoundingClientRect().top;
    });
    check('the line is marked in the editor', marked !== null && marked !== undefined, `line ${shown}`);
    await picture('dekker-step');
    await page.keyboard.press('End');
    await pause(700);
    await picture('dekker-end');
    await close();
  });
  await part('the quick fix', async () => {
    await page.mouse.click(...(await page.evaluate(() => {
      const { left, top, height } = document.querySelector('.squiggly-error').getBoundingClientRect();
      return [left + 20, top + height / 2];
    })));
    await pause(500);
    await page.keyboard.down('Control');
    await page.keyboard.press('Period');
    await page.keyboard.up('Control');
    const actions = await until('quick fixes', () => {
      const rows = [...document.querySelectorAll('.action-widget .monaco-list-row')].map((row) => row.textContent);
      return rows.some((row) => row.includes('safe under tso')) && rows;
    });
    check('the quick fix', true, actions.join(' | '));
    await picture('dekker-fix');
    await page.keyboard.press('Enter');
    await until('the fences', () => [...document.querySelectorAll('.view-line')].some((line) => /^\s*fence;/.test(line.textContent.replace(/\u00a0/g, ' '))));
    await run('Fencewright: Check Now');
    await lens(': safe under tso');
    await pause(2500);
    await picture('dekker-fixed');
    check('why a fence is needed', true, (await hover('fence')).replace(/\n/g, ' / '));
    await picture('dekker-hover');
  });
  await part('a proof', async () => {
    await open('bakery.fenced.fw');
    await lens('check under tso');
    await run('Fencewright: Check Now');
    await lens(': safe under tso');
    await pause(4000);
    await picture('bakery-safe');
    check('what is known', true, (await hover('number', 1)).replace(/\n/g, ' / '));
    await picture('bakery-hover');
    await page.mouse.move(10, 10);
    await click(': safe under tso');
    const frame = await panel('.answer h3');
    await pause(1500);
    await picture('bakery-page');
    check('the proof', (await frame.$eval('body', (body) => body.innerText)).includes('Why it holds'));
    await close();
  });
  await part('c', async () => {
    await open('peterson.c');
    await lens('check under tso');
    await run('Fencewright: Check Now');
    await lens('unsafe under tso');
    await pause(1500);
    await picture('peterson-violated');
    await click('show the execution');
    await panel('.viewer');
    await pause(1500);
    await page.keyboard.press('End');
    await pause(1500);
    await picture('peterson-page');
  });
  check('no complaint about the policy of a page', complaints.length === 0, complaints.join(' | '));
} catch (error) {
  check(error.stack, false);
} finally {
  await browser.close();
  code.kill();
  fs.rmSync(scratch, { recursive: true, force: true });
}
process.exit(failures > 0 ? 1 : 0);
