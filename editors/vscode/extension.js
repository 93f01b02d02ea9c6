// The client of `fencewright lsp`. All that is known about programs is known by the server; here is what only an editor can do.
'use strict';

const vscode = require('vscode');
const { LanguageClient, State } = require('vscode-languageclient/node');

/** Documents with executions have URIs of this scheme: VS Code shows them read-only. */
const SCHEME = 'fencewright-execution';

const CHECK = 'fencewright.check';
const EXECUTION = 'fencewright.execution';

let client;

/** Texts that were shown, by the path of their URI. */
const texts = new Map();
const changed = new vscode.EventEmitter();

/** Panels with pages, by the arguments of the command that they answer. */
const panels = new Map();
/** How the line is marked that a page is at. */
const marked = vscode.window.createTextEditorDecorationType({
  isWholeLine: true,
  backgroundColor: new vscode.ThemeColor('editor.stackFrameHighlightBackground'),
  overviewRulerColor: new vscode.ThemeColor('editor.stackFrameHighlightBackground'),
});

function configuration() {
  return vscode.workspace.getConfiguration('fencewright');
}

function makeClient() {
  const command = configuration().get('path', 'fencewright');
  const languages = ['fencewright', 'fencewright-rmm', 'fencewright-litmus'];
  if (configuration().get('c', true)) {
    languages.push('c');
  }
  const selector = languages.flatMap((language) => [
    { scheme: 'file', language },
    { scheme: 'untitled', language },
  ]);
  // Automata have no extension of their own; the server knows them by how they begin.
  selector.push({ scheme: 'file', pattern: '**/*.txt' });
  return new LanguageClient(
    'fencewright',
    'Fencewright',
    { command, args: ['lsp'] },
    {
      documentSelector: selector,
      initializationOptions: { showsTexts: true },
      synchronize: {
        configurationSection: 'fencewright',
        fileEvents: vscode.workspace.createFileSystemWatcher('**/*.{h,c}'),
      },
      middleware: {
        // A lens runs its command on the server; what the server gives back is shown here.
        executeCommand: async (command, args, next) => {
          const result = await next(command, args);
          if (command === EXECUTION && result) {
            await (result.page ? showPage(JSON.stringify(args), result) : show(result));
          } else if (command === CHECK && Array.isArray(result)) {
            summarise(result);
          }
          return result;
        },
      },
    }
  );
}

/** Opens a text as a read-only document beside the program. */
async function show({ title, text }) {
  const uri = vscode.Uri.from({ scheme: SCHEME, path: `/${title}.txt` });
  texts.set(uri.path, text);
  changed.fire(uri);
  const document = await vscode.workspace.openTextDocument(uri);
  await vscode.window.showTextDocument(document, { viewColumn: vscode.ViewColumn.Beside, preview: true });
}

/**
 * Opens a page in a panel beside the program, or shows it again. The page has a policy of its own: it allows its script and its style sheet, by
 * their hashes, and nothing else, no network either.
 */
function showPage(key, { title, page, files }) {
  let shown = panels.get(key);
  if (!shown) {
    const [other] = panels.values();
    const column = other ? other.panel.viewColumn : vscode.ViewColumn.Beside;
    const options = { enableScripts: true, enableFindWidget: true, retainContextWhenHidden: true, localResourceRoots: [] };
    const panel = vscode.window.createWebviewPanel('fencewright.execution', title, column, options);
    shown = { panel };
    panels.set(key, shown);
    const opened = shown;
    panel.webview.onDidReceiveMessage((at) => mark(opened, at));
    panel.onDidDispose(() => {
      panels.delete(key);
      unmark();
    });
  }
  // Lines have their numbers as long as no text changes.
  Object.assign(shown, { title, files: files || [], isCurrent: true });
  shown.panel.title = title;
  shown.panel.webview.html = page;
  shown.panel.reveal(undefined, false);
}

/** Marks the line that a page is at, where its file can be seen. */
function mark({ files, isCurrent }, { file, line }) {
  unmark();
  const uri = file !== undefined && isCurrent && files[file];
  const same = (editor) => editor.document.uri.toString() === vscode.Uri.parse(uri).toString();
  for (const editor of uri ? vscode.window.visibleTextEditors.filter(same) : []) {
    const range = new vscode.Range(line - 1, 0, line - 1, 0);
    editor.setDecorations(marked, [range]);
    editor.revealRange(range, vscode.TextEditorRevealType.InCenterIfOutsideViewport);
  }
}

function unmark() {
  vscode.window.visibleTextEditors.forEach((editor) => editor.setDecorations(marked, []));
}

/** What pages say is about texts as they were. */
function outdate(document) {
  const is = (uri) => uri && vscode.Uri.parse(uri).toString() === document.uri.toString();
  for (const shown of panels.values()) {
    if (shown.isCurrent && shown.files.some(is)) {
      shown.isCurrent = false;
      shown.panel.title = `${shown.title} (of an earlier text)`;
      unmark();
    }
  }
}

function summarise(verdicts) {
  const words = verdicts.map(({ property, model, verdict }) => `${property}: ${verdict} under ${model}`);
  vscode.window.setStatusBarMessage(`Fencewright: ${words.join(', ') || 'the program states no property'}`, 10000);
}

/** The program in the editor that has the focus. */
function active() {
  const editor = vscode.window.activeTextEditor;
  if (!editor) {
    vscode.window.showInformationMessage('Fencewright: no program is open.');
  }
  return editor && editor.document;
}

async function checkNow() {
  const document = active();
  if (document) {
    if (!document.isUntitled) {
      await document.save();
    }
    await vscode.commands.executeCommand(CHECK, document.uri.toString());
  }
}

/** Asks which of the verdicts on the program is to be shown. */
async function showExecution() {
  const document = active();
  if (!document) {
    return;
  }
  const lenses = await vscode.commands.executeCommand('vscode.executeCodeLensProvider', document.uri, 1000);
  const verdicts = (lenses || []).map((lens) => lens.command).filter((command) => command && command.command === EXECUTION);
  if (verdicts.length === 0) {
    vscode.window.showInformationMessage('Fencewright: there is no verdict yet; "Check Now" makes one.');
    return;
  }
  const items = verdicts.map((command) => ({ label: command.title, command }));
  const chosen = items.length === 1 ? items[0] : await vscode.window.showQuickPick(items);
  if (chosen) {
    await vscode.commands.executeCommand(EXECUTION, ...chosen.command.arguments);
  }
}

async function start() {
  client = makeClient();
  try {
    await client.start();
  } catch (error) {
    const path = configuration().get('path', 'fencewright');
    vscode.window.showErrorMessage(`Fencewright: cannot start "${path} lsp": ${error.message}. See the setting fencewright.path.`);
  }
}

async function stop() {
  if (client && client.state === State.Running) {
    await client.stop();
  }
  client = undefined;
}

exports.activate = async function activate(context) {
  const provider = {
    onDidChange: changed.event,
    provideTextDocumentContent: (uri) => texts.get(uri.path) || '',
  };
  context.subscriptions.push(
    vscode.workspace.registerTextDocumentContentProvider(SCHEME, provider),
    vscode.workspace.onDidCloseTextDocument((document) => {
      if (document.uri.scheme === SCHEME) {
        texts.delete(document.uri.path);
      }
    }),
    vscode.workspace.onDidChangeTextDocument((event) => {
      if (event.contentChanges.length > 0) {
        outdate(event.document);
      }
    }),
    marked,
    vscode.commands.registerCommand('fencewright.checkNow', checkNow),
    vscode.commands.registerCommand('fencewright.showExecution', showExecution),
    vscode.commands.registerCommand('fencewright.restart', async () => {
      await stop();
      await start();
    })
  );
  await start();
};

exports.deactivate = stop;
