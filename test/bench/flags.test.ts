import { CommanderError } from 'commander';
import { describe, expect, it } from 'vitest';
import { benchCommand, type Flags } from '../../bench/flags.ts';

/** What the action gets, or what is printed and the exit code. */
async function parsed(...line: string[]): Promise<Flags | { error: string; code: number }> {
  let flags: Flags | undefined;
  let error = '';
  const command = benchCommand(['check', 'rules'], async (given) => {
    flags = given;
  });
  command.exitOverride().configureOutput({
    writeErr: (text) => {
      error += text;
    },
  });
  try {
    await command.parseAsync(line, { from: 'user' });
  } catch (thrown) {
    if (thrown instanceof CommanderError) {
      return { error, code: thrown.exitCode };
    }
    throw thrown;
  }
  return flags ?? { error: 'the action was not called', code: 0 };
}

describe('the flags of the bench', () => {
  it('have a commit to compare with, or none', async () => {
    expect(await parsed('--against', 'v0.1.0', '--only', 'check')).toMatchObject({
      against: 'v0.1.0',
      only: ['check'],
    });
    expect(await parsed('--only', 'check')).not.toHaveProperty('against');
  });

  it.each([
    { line: ['--against'], why: 'argument missing' },
    { line: ['--against', '--quick'], why: 'Expected a tag, branch or commit.' },
    { line: ['--against', ''], why: 'Expected a tag, branch or commit.' },
    { line: ['--against', 'HEAD', '--against', 'HEAD~1'], why: 'Expected it once.' },
    { line: ['--against', 'HEAD', '--render'], why: 'cannot be used with' },
    { line: ['--runs', '0'], why: '' },
    { line: ['--runs', 'many'], why: '' },
    { line: ['--requests', '1.5'], why: '' },
    { line: ['--only', 'everything'], why: '' },
    { line: ['--format', 'xml'], why: '' },
  ])('are refused in one line: $line', async ({ line, why }) => {
    expect(await parsed(...line)).toEqual({
      error: expect.stringMatching(new RegExp(`^error: [^\\n]*${why.replaceAll('.', '\\.')}[^\\n]*\\n$`)),
      code: 1,
    });
  });
});
