/** The text is not usable YAML. The message never contains a part of the text. */
export class YamlError extends Error {
  override readonly name = 'YamlError';
  /** The message without the line. */
  readonly reason: string;
  /** From 1; `undefined` for the whole text. */
  readonly line: number | undefined;

  constructor(reason: string, line?: number) {
    super(line === undefined ? reason : `line ${line}: ${reason}`);
    this.reason = reason;
    this.line = line;
  }
}
