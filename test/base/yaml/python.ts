/** Reads texts with PyYAML. One process serves a whole test file: a JSON line in, a JSON line out. */
import { type ChildProcessWithoutNullStreams, spawn, spawnSync } from 'node:child_process';
import { createInterface } from 'node:readline';

/** A value in Python. A number is its `repr`, so that 1 is not 1.0 and no digit is lost. */
export type Seen =
  | { readonly kind: 'null' }
  | { readonly kind: 'bool' | 'int' | 'float' | 'str' | 'date' | 'datetime' | 'bytes'; readonly text: string }
  | { readonly kind: 'list' | 'set'; readonly items: readonly Seen[] }
  | { readonly kind: 'map'; readonly pairs: readonly SeenPair[] };

/** `name` = the key as it is written, without quotes. */
export type SeenPair = readonly [name: string, key: Seen, value: Seen];

/** `undefined` = PyYAML refuses the text. */
export type Read = Seen | undefined;

/** How PyYAML writes: `default_style`, `width` and `allow_unicode` of `yaml.dump`. */
export interface Form {
  readonly style?: '"' | "'" | '|' | '>' | null;
  readonly width?: number | null;
  readonly unicode?: boolean;
  /** Sets what stands at the top level apart by an empty line, as SkyPilot does. */
  readonly isApart?: boolean;
}

/** Sets what stands at the top level apart by an empty line, as SkyPilot does. */
export const TOP_LEVEL_APART = `class TopLevelApart(yaml.SafeDumper):
    def write_line_break(self, data=None):
        super().write_line_break(data)
        if len(self.indents) == 1:
            super().write_line_break()
`;

const SCRIPT = `
import datetime, json, sys, yaml

${TOP_LEVEL_APART}
def scalar(value):
    if value is None:
        return {'kind': 'null'}
    kind = type(value).__name__
    return {'kind': kind, 'text': value if kind == 'str' else repr(value)}

def seen(loader, node):
    if isinstance(node, yaml.SequenceNode) and node.tag == 'tag:yaml.org,2002:seq':
        return {'kind': 'list', 'items': [seen(loader, item) for item in node.value]}
    if isinstance(node, yaml.MappingNode) and node.tag == 'tag:yaml.org,2002:map':
        loader.flatten_mapping(node)
        pairs = {}
        for key, value in node.value:
            pairs[loader.construct_object(key, deep=True)] = [key.value, seen(loader, key), seen(loader, value)]
        return {'kind': 'map', 'pairs': list(pairs.values())}
    return scalar(loader.construct_object(node, deep=True))

def read(text, Loader):
    loader = Loader(text)
    try:
        if not loader.check_node():
            return {'kind': 'null'}
        result = seen(loader, loader.get_node())
        if loader.check_node():
            raise ValueError('another document')
        return result
    finally:
        loader.dispose()

def answer(ask):
    if 'dump' in ask:
        form = {'default_style': ask['style'], 'width': ask['width'], 'allow_unicode': ask['unicode']}
        dumper = TopLevelApart if ask['apart'] else yaml.Dumper
        return yaml.dump(json.loads(ask['dump']), Dumper=dumper, default_flow_style=False, sort_keys=False, **form)
    try:
        return read(ask['read'], yaml.CSafeLoader if ask['fast'] and yaml.__with_libyaml__ else yaml.SafeLoader)
    except Exception as error:
        return {'refused': type(error).__name__}

for line in sys.stdin:
    print(json.dumps(answer(json.loads(line))), flush=True)
`;

export const hasPyYaml =
  spawnSync('python3', ['-c', 'import yaml; assert yaml.__version__ >= "6"']).status === 0;

if (!hasPyYaml) {
  console.warn('SKIPPED: comparing with PyYAML needs python3 with PyYAML 6');
}

export class Python {
  readonly #process: ChildProcessWithoutNullStreams;
  readonly #waiting: ((line: string) => void)[] = [];

  /** `script`: reads a JSON line for each question, and writes a JSON line as its answer. */
  constructor(script = SCRIPT) {
    this.#process = spawn('python3', ['-c', script]);
    this.#process.stderr.pipe(process.stderr);
    createInterface({ input: this.#process.stdout }).on('line', (line) => this.#waiting.shift()?.(line));
  }

  /** The only document of a text. `fast` = with the reader in C, if there is one; SkyPilot uses both. */
  async read(text: string, fast = false): Promise<Read> {
    const seen = (await this.ask({ read: text, fast })) as Seen | { refused: string };
    return 'refused' in seen ? undefined : seen;
  }

  /** The YAML that SkyPilot writes, or in another form. */
  async dump(
    value: unknown,
    { style = null, width = null, unicode = false, isApart = false }: Form = {},
  ): Promise<string> {
    return (await this.ask({
      dump: JSON.stringify(value),
      style,
      width,
      unicode,
      apart: isApart,
    })) as string;
  }

  close(): void {
    this.#process.stdin.end();
  }

  ask(question: unknown): Promise<unknown> {
    return new Promise((resolve) => {
      this.#waiting.push((line) => resolve(JSON.parse(line)));
      this.#process.stdin.write(`${JSON.stringify(question)}\n`);
    });
  }
}
