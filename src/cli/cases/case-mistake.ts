import type { Problem } from '../../base/errors.ts';
import type { Path } from '../../yaml/tree.ts';
import type { ReadCase } from './case-files.ts';

/** A mistake in a case: it cannot be run. */
export class CaseMistake extends Error {
  override readonly name = 'CaseMistake';
  readonly problems: readonly Problem[];

  constructor(problems: readonly Problem[]) {
    super('a mistake in a case');
    this.problems = problems;
  }

  static at(
    { file, lineOf }: Pick<ReadCase<unknown>, 'file' | 'lineOf'>,
    path: Path,
    message: string,
  ): CaseMistake {
    return new CaseMistake([
      { severity: 'error', origin: { kind: 'file', file, line: lineOf(path) }, message },
    ]);
  }
}
