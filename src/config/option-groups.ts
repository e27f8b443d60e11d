/** Checks options that belong together: against their schema, the files that they name, and the group's own check. */
import { accessSync, constants, statSync } from 'node:fs';
import type { z } from 'zod';
import { withinAMinute } from '../base/deadline.ts';
import { ConfigurationError, errorText, type Problem } from '../base/errors.ts';
import { isReadByEveryone, systemErrorText, whyAnyWritable } from './read-file.ts';
import { type Setting, schemaInput } from './resolve.ts';
import { hideCredentials, showText } from './secret.ts';
import { isConfigFile } from './sources.ts';

export interface SectionProblem {
  readonly option: string;
  readonly message: string;
}

/**
 * Checks the values of a group of options. A mistake in a file that they name is a whole `Problem`, with its
 * place. `settings`: the whole configuration, for checks that depend on other sections.
 */
export type OptionsCheck = (
  values: never,
  settings?: readonly Setting[],
) => readonly (SectionProblem | Problem)[] | Promise<readonly (SectionProblem | Problem)[]>;

/** A section other than `[enforcement]`, such as `[service]`. */
export interface FurtherSection {
  readonly section: string;
  readonly schema: z.ZodObject;
  /** Checks what a schema cannot, such as file contents. Called if the values match the schema. */
  readonly check?: OptionsCheck | undefined;
  /**
   * Adds options that depend on its values, such as policy options. Called with the values of a first pass,
   * and the names that are set but not declared by the section.
   */
  readonly extend?: (values: never, undeclared: readonly string[]) => Promise<SectionExtension>;
}

/** Additional options of a section. */
export interface SectionExtension {
  readonly schemas: readonly z.ZodObject[];
  /** For some of the schemas. */
  readonly checks?: ReadonlyMap<z.ZodObject, OptionsCheck>;
  readonly problems: readonly ExtensionProblem[];
  /** Option prefixes of classes that could not be loaded, each with an error in `problems`. */
  readonly unloaded: readonly string[];
  /** Known options without effect, such as those of policies that are not enabled, and the reason. */
  readonly unused: readonly { readonly schema: z.ZodObject; readonly reason: string }[];
}

export interface ExtensionProblem extends SectionProblem {
  /** Default: an error. */
  readonly severity?: Problem['severity'];
}

/** Options of one schema: of an enabled filter, or of a section. */
interface OptionGroup {
  readonly section: string;
  readonly schema: z.ZodObject;
  readonly check?: OptionsCheck | undefined;
  /** The option under which to report a mistake that concerns no single option. */
  readonly named?: string | undefined;
  /** The class whose options these are, for messages. Default: the section. */
  readonly owner?: string | undefined;
}

/**
 * Checks the options of a group against its whole schema, and the files that they name. If one is wrong by
 * itself (`wrong`), they are not checked together.
 */
export async function checkTogether(
  { section, schema, named, check, owner = `[${section}]` }: OptionGroup,
  settings: readonly Setting[],
  wrong: ReadonlySet<string>,
): Promise<{ options: unknown; problems: Problem[] }> {
  const names = new Set(Object.keys(schema.shape));
  const own = settings.filter(({ option }) => option.section === section && names.has(option.name));
  const problems = own.flatMap((setting) => [
    ...deprecated(setting),
    ...unreadableFile(setting),
    ...openFile(setting),
  ]);
  const report = (option: string | undefined, message: string) =>
    problems.push(atOrigin({ severity: 'error', section, option, message }, settings));
  const hasWrong = own.some(({ option }) => wrong.has(optionId(option.section, option.name)));
  let options: unknown;
  try {
    const parsed = schema.safeParse(schemaInput(own, names));
    options = parsed.data;
    if (!parsed.success && !hasWrong) {
      for (const { path, message } of parsed.error.issues) {
        report(path[0] === undefined ? named : String(path[0]), message);
      }
    }
    if (parsed.success && !hasWrong && !problems.some(({ severity }) => severity === 'error')) {
      for (const problem of (await withinAMinute(() => check?.(parsed.data as never, settings))) ?? []) {
        if ('severity' in problem) {
          problems.push(atOrigin(problem, settings, { isSafe: true }));
        } else {
          report(problem.option, problem.message);
        }
      }
    }
  } catch (thrown) {
    report(named, `${owner} could not check its options: ${errorText(thrown)}`);
  }
  return { options, problems };
}

/** As oslo.config, warns about deprecated options that are set, and still reads them. */
function deprecated({ option, origin }: Setting): Problem[] {
  const { section, name, deprecation } = option;
  return deprecation === undefined || origin.kind === 'default'
    ? []
    : [{ severity: 'warning', origin, section, option: name, message: `deprecated: ${deprecation}` }];
}

function unreadableFile({ option, value, origin, secret }: Setting): Problem[] {
  if (!option.file || typeof value !== 'string') {
    return [];
  }
  try {
    accessSync(value, constants.R_OK);
    if (statSync(value).isFile() || value === '/dev/null') {
      return [];
    }
    throw new Error('it is not a regular file');
  } catch (thrown) {
    const shown = secret ? 'a value that is not shown' : showText(value);
    const message = `expected a file that can be read, got ${shown} (${systemErrorText(thrown)})`;
    return [{ severity: 'error', origin, section: option.section, option: option.name, message }];
  }
}

/** A world-writable file is an error; a world-readable secret is a warning. */
function openFile({ option, value, origin, secret }: Setting): Problem[] {
  const named = option.file || option.watched ? textsOf(value) : [];
  const problem = (severity: Problem['severity'], file: string, reason: string): Problem => {
    const message = `${secret ? 'the file that it names' : showText(file)}: ${reason}`;
    return { severity, origin, section: option.section, option: option.name, message };
  };
  return named.flatMap((file) => {
    const reason = whyAnyWritable(file, isConfigFile);
    return [
      ...(reason === undefined ? [] : [problem('error', file, reason)]),
      ...(option.secretFile && isReadByEveryone(file)
        ? [problem('warning', file, 'everyone may read this secret; remove that permission: chmod o-r')]
        : []),
    ];
  });
}

/** The value if it is a text, or the texts in a list or dictionary. */
export function textsOf(value: unknown): string[] {
  const all = typeof value === 'object' && value !== null ? Object.values(value) : [value];
  return all.filter((one) => typeof one === 'string');
}

export function optionId(section: string | undefined, option: string | undefined): string {
  return `${section}.${option}`;
}

/**
 * Adds the place where the option was set to a problem without an origin, and hides keys in messages about
 * URLs. Messages about secrets are hidden too, unless they show no value (`isSafe`).
 */
export function atOrigin(
  problem: Problem,
  settings: readonly Setting[],
  { isSafe = false }: { readonly isSafe?: boolean } = {},
): Problem {
  const setting = settings.find(
    ({ option }) => option.section === problem.section && option.name === problem.option,
  );
  if (setting === undefined) {
    return problem;
  }
  const { option, origin, secret } = setting;
  const shown = option.url ? hideCredentials(problem.message) : problem.message;
  return {
    ...problem,
    message: secret && !isSafe ? 'a wrong value that is not shown' : shown,
    origin: problem.origin ?? (origin.kind === 'default' ? undefined : origin),
  };
}

/** Mistakes that show when the configuration is used, with their places. */
export function mistakesAt(problems: readonly Problem[], settings: readonly Setting[]): ConfigurationError {
  return new ConfigurationError(problems.map((problem) => atOrigin(problem, settings, { isSafe: true })));
}
