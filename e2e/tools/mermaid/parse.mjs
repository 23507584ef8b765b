// Reads a diagram from standard input and fails where mermaid cannot read it.
import {readFileSync} from 'node:fs';
import {JSDOM} from 'jsdom';

const page = new JSDOM('');
globalThis.window = page.window;
globalThis.document = page.window.document;
const {default: mermaid} = await import('mermaid');
const {diagramType} = await mermaid.parse(readFileSync(0, 'utf8'));
console.log(diagramType);
