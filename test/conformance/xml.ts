/** A strict reader of the XML that reports are written in: elements, attributes, text, CDATA. Anything else throws. */
export interface Element {
  readonly name: string;
  readonly attributes: Readonly<Record<string, string>>;
  readonly children: readonly Element[];
  /** Of this element itself, CDATA included. */
  readonly text: string;
}

const ENTITIES: Readonly<Record<string, string>> = { lt: '<', gt: '>', amp: '&', quot: '"', apos: "'" };
/** What XML 1.0 does not allow, also not as a reference. */
const FORBIDDEN = /[^\t\n\r\u{20}-\u{D7FF}\u{E000}-\u{FFFD}\u{10000}-\u{10FFFF}]/u;
const TOKEN =
  /<!\[CDATA\[(?<cdata>.*?)\]\]>|<\/(?<end>[\w:.-]+)\s*>|<(?<start>[\w:.-]+)(?<attributes>(?:\s+[\w:.-]+="[^"<]*")*)\s*(?<empty>\/?)>|(?<text>[^<]+)/suy;

export function parseXml(xml: string): Element {
  if (FORBIDDEN.test(xml)) {
    throw new Error(`a character that XML does not allow: ${JSON.stringify(FORBIDDEN.exec(xml)?.[0])}`);
  }
  const body = xml.replace(/^<\?xml [^?]*\?>\s*/, '').trimEnd();
  const root = { name: '', attributes: {}, children: [] as Element[], text: '' };
  const open = [root];
  TOKEN.lastIndex = 0;
  while (TOKEN.lastIndex < body.length) {
    const at = TOKEN.lastIndex;
    const { cdata, end, start, attributes = '', empty, text } = TOKEN.exec(body)?.groups ?? {};
    const parent = open.at(-1) ?? root;
    if (cdata !== undefined) {
      parent.text += cdata;
    } else if (text !== undefined) {
      parent.text += decoded(text);
    } else if (start !== undefined) {
      const element = { name: start, attributes: attributesOf(attributes), children: [], text: '' };
      parent.children.push(element);
      if (empty === '') {
        open.push(element);
      }
    } else if (end === undefined || open.pop()?.name !== end) {
      throw new Error(`not well-formed at ${at}: ${body.slice(at, at + 40)}`);
    }
  }
  const [document, ...others] = root.children;
  if (document === undefined || others.length > 0 || open.length > 1) {
    throw new Error('expected one element that is closed');
  }
  return document;
}

function attributesOf(text: string): Record<string, string> {
  return Object.fromEntries(
    [...text.matchAll(/([\w:.-]+)="([^"]*)"/g)].map(([, name = '', value = '']) => [name, decoded(value)]),
  );
}

function decoded(text: string): string {
  return text.replace(/&([^;]*);?/g, (whole, name: string) => {
    const code = /^#(?:x([\da-f]+)|(\d+))$/i.exec(name);
    const value =
      code === null
        ? ENTITIES[name]
        : String.fromCodePoint(Number.parseInt(code[1] ?? code[2] ?? '', code[1] === undefined ? 10 : 16));
    if (value === undefined || !whole.endsWith(';')) {
      throw new Error(`no such entity: ${whole}`);
    }
    return value;
  });
}
