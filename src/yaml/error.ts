/** The text is no YAML that can be used. The message never holds a piece of it. */
export class YamlError extends Error {
  override readonly name = 'YamlError';
  /** Without the line. */
  readonly reason: string;
  /** From 1; `undefined` when it is about the whole. */
  readonly line: number | undefined;

  constructor(reason: string, line?: number) {
    super(line === undefined ? reason : `line ${line}: ${reason}`);
    this.reason = reason;
    this.line = line;
  }
}
