/** Options that belong together: what their schema, their files and whoever declares them have against their values. */
import { accessSync, constants } from 'node:fs';
import type { z } from 'zod';
import type { Problem } from '../errors.ts';
import { isReadByEveryone, whyAnyWritable } from './file-modes.ts';
import { isConfigFile } from './places.ts';
import { systemErrorText } from './read-file.ts';
import { type Setting, schemaInput } from './resolve.ts';
import { showText } from './secret.ts';

/** What is wrong with an option of a section. */
export interface SectionProblem {
  readonly option: string;
  readonly message: string;
}

/** Looks at the values of a group of options. A mistake in a file that they name has its own place: it is a whole problem. */
export type OptionsCheck = (
  values: never,
) => readonly (SectionProblem | Problem)[] | Promise<readonly (SectionProblem | Problem)[]>;

/** A section that is not `[enforcement]` and is checked along with it, such as `[service]`. */
export interface FurtherSection {
  readonly section: string;
  readonly schema: z.ZodObject;
  /** What a schema can't see, such as what is in a file. Called when the schema has nothing against the values. */
  readonly check?: OptionsCheck | undefined;
  /** Options that come with what its values name, such as those of policies. Called with its values at a first look. */
  readonly extend?: (values: never) => Promise<SectionExtension>;
}

/** What belongs to a section besides its own options. */
export interface SectionExtension {
  readonly schemas: readonly z.ZodObject[];
  readonly problems: readonly SectionProblem[];
}

/** Options that one schema holds together: those of a filter that runs, or of a section. */
export interface OptionGroup {
  readonly section: string;
  readonly schema: z.ZodObject;
  readonly check?: OptionsCheck | undefined;
  /** Where a mistake is reported that is no single option's. */
  readonly named: string | undefined;
}

/**
 * The options of a group, held against its whole schema: what they must fulfil together, and their files. With an option
 * that is wrong by itself (`wrong`) there is nothing to say about them together.
 */
export async function checkTogether(
  { section, schema, named, check }: OptionGroup,
  settings: readonly Setting[],
  wrong: ReadonlySet<string>,
): Promise<{ options: unknown; problems: Problem[] }> {
  const names = new Set(Object.keys(schema.shape));
  const own = settings.filter(({ option }) => option.section === section && names.has(option.name));
  const problems = own.flatMap((setting) => [...unreadableFile(setting), ...openFile(setting)]);
  const parsed = schema.safeParse(schemaInput(own, names));
  const report = (option: string | undefined, message: string) =>
    problems.push(atOrigin({ severity: 'error', section, option, message }, settings));
  const hasWrong = own.some(({ option }) => wrong.has(optionId(option.section, option.name)));
  if (!parsed.success && !hasWrong) {
    for (const { path, message } of parsed.error.issues) {
      report(path[0] === undefined ? named : String(path[0]), message);
    }
  }
  if (parsed.success && !hasWrong && !problems.some(({ severity }) => severity === 'error')) {
    for (const problem of (await check?.(parsed.data as never)) ?? []) {
      if ('severity' in problem) {
        problems.push(withOrigin(problem, settings));
      } else {
        report(problem.option, problem.message);
      }
    }
  }
  return { options: parsed.data, problems };
}

function unreadableFile({ option, value, origin, secret }: Setting): Problem[] {
  if (!option.file || typeof value !== 'string') {
    return [];
  }
  try {
    accessSync(value, constants.R_OK);
    return [];
  } catch (thrown) {
    const shown = secret ? 'a value that is not shown' : showText(value);
    const message = `expected a file that can be read, got ${shown} (${systemErrorText(thrown)})`;
    return [{ severity: 'error', origin, section: option.section, option: option.name, message }];
  }
}

/** What everyone may write is no file of the operator's; what everyone may read is no secret. */
function openFile({ option, value, origin, secret }: Setting): Problem[] {
  const named = option.file || option.watched ? [value].flat().filter((one) => typeof one === 'string') : [];
  const problem = (severity: Problem['severity'], file: string, reason: string): Problem => {
    const message = `${secret ? 'the file that it names' : showText(file)}: ${reason}`;
    return { severity, origin, section: option.section, option: option.name, message };
  };
  return named.flatMap((file) => {
    const reason = whyAnyWritable(file, isConfigFile);
    return [
      ...(reason === undefined ? [] : [problem('error', file, reason)]),
      ...(option.secretFile && isReadByEveryone(file)
        ? [problem('warning', file, 'everyone may read this secret; take that right away: chmod o-r')]
        : []),
    ];
  });
}

export function optionId(section: string | undefined, option: string | undefined): string {
  return `${section}.${option}`;
}

/** A problem of a section that says nothing of where, with the place where its option was set. Its words hold no secret. */
export function withOrigin(problem: Problem, settings: readonly Setting[]): Problem {
  const setting = settings.find(
    ({ option }) => option.section === problem.section && option.name === problem.option,
  );
  return problem.origin !== undefined || setting === undefined || setting.origin.kind === 'default'
    ? problem
    : { ...problem, origin: setting.origin };
}

/** A problem about a list is reported where that list was written. */
export function atOrigin(problem: Problem, settings: readonly Setting[]): Problem {
  const setting = settings.find(
    ({ option }) => option.section === problem.section && option.name === problem.option,
  );
  const message = setting?.secret === true ? 'a wrong value that is not shown' : problem.message;
  return { ...problem, message, origin: setting?.origin.kind === 'default' ? undefined : setting?.origin };
}
