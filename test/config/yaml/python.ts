/**
 * What PyYAML makes of texts. One process serves all of a test file: a text a line, as JSON, and a line back for each.
 */
import { type ChildProcessWithoutNullStreams, spawn, spawnSync } from 'node:child_process';
import { createInterface, type Interface } from 'node:readline';

/** A value as Python has it. A number is its `repr`, so that 1 is not 1.0 and no digit is lost. */
export type Seen =
  | { readonly kind: 'null' }
  | { readonly kind: 'bool' | 'int' | 'float' | 'str' | 'date' | 'datetime' | 'bytes'; readonly text: string }
  | { readonly kind: 'list' | 'set'; readonly items: readonly Seen[] }
  | { readonly kind: 'map'; readonly pairs: readonly SeenPair[] };

/** `name` = the key as it is written, without quotes. */
export type SeenPair = readonly [name: string, key: Seen, value: Seen];

/** `undefined` = PyYAML refuses the text. */
export type Read = Seen | undefined;

const SCRIPT = `
import datetime, json, sys, yaml

def scalar(value):
    if value is None:
        return {'kind': 'null'}
    kind = type(value).__name__
    return {'kind': kind, 'text': value if kind == 'str' else repr(value)}

def hashable(value):
    return value if not isinstance(value, (list, dict, set)) else repr(value)

def seen(loader, node):
    if isinstance(node, yaml.SequenceNode) and node.tag == 'tag:yaml.org,2002:seq':
        return {'kind': 'list', 'items': [seen(loader, item) for item in node.value]}
    if isinstance(node, yaml.MappingNode) and node.tag == 'tag:yaml.org,2002:map':
        loader.flatten_mapping(node)
        pairs = {}
        for key, value in node.value:
            pairs[hashable(loader.construct_object(key, deep=True))] = [
                key.value if isinstance(key.value, str) else '', seen(loader, key), seen(loader, value)]
        return {'kind': 'map', 'pairs': list(pairs.values())}
    return scalar(loader.construct_object(node, deep=True))

def read(text, Loader):
    loader = Loader(text)
    try:
        while not loader.check_event(yaml.DocumentStartEvent):
            if loader.check_event(yaml.StreamEndEvent):
                return {'kind': 'null'}
            loader.get_event()
        result = seen(loader, loader.compose_document())
        loader.check_event()
        return result
    finally:
        loader.dispose()

def answer(ask):
    if 'dump' in ask:
        return yaml.dump(json.loads(ask['dump']), default_flow_style=False, sort_keys=False)
    try:
        return read(ask['read'], yaml.SafeLoader)
    except (yaml.YAMLError, ValueError, OverflowError, TypeError, AttributeError, KeyError, IndexError, RecursionError) as error:
        return {'refused': type(error).__name__}

for line in sys.stdin:
    print(json.dumps(answer(json.loads(line))), flush=True)
`;

export const hasPyYaml =
  spawnSync('python3', ['-c', 'import yaml; assert yaml.__version__ >= "6"']).status === 0;

if (!hasPyYaml) {
  console.warn('python3 with PyYAML 6 is missing here: what is compared with it is skipped');
}

export class Python {
  readonly #process: ChildProcessWithoutNullStreams;
  readonly #lines: Interface;
  readonly #waiting: ((line: string) => void)[] = [];

  constructor() {
    this.#process = spawn('python3', ['-c', SCRIPT]);
    this.#process.stderr.pipe(process.stderr);
    this.#lines = createInterface({ input: this.#process.stdout });
    this.#lines.on('line', (line) => this.#waiting.shift()?.(line));
  }

  /** The first document of a text. */
  async read(text: string): Promise<Read> {
    const seen = (await this.#ask({ read: text })) as Seen | { refused: string };
    return 'refused' in seen ? undefined : seen;
  }

  /** As SkyPilot writes it. */
  async dump(value: unknown): Promise<string> {
    return (await this.#ask({ dump: JSON.stringify(value) })) as string;
  }

  close(): void {
    this.#process.stdin.end();
  }

  #ask(question: unknown): Promise<unknown> {
    return new Promise((resolve) => {
      this.#waiting.push((line) => resolve(JSON.parse(line)));
      this.#process.stdin.write(`${JSON.stringify(question)}\n`);
    });
  }
}
