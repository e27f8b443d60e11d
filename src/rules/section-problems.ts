/** Problems of the rules of a section: mistakes, rules that are never used, and unknown names. */
import { statSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import type { Problem } from '../base/errors.ts';
import { shown } from '../base/yaml/tree.ts';
import { RESOURCE_TYPES, whyNoType } from '../config/names.ts';
import { systemErrorText } from '../config/read-file.ts';
import type { Setting } from '../config/resolve.ts';
import { leaseEnvironment } from './lease/environment.ts';
import { podEnvironment } from './pod/environment.ts';
import { readRules } from './read-rules.ts';
import type { Operation, Rule } from './rule.ts';
import type { PlacedRule } from './rule-file.ts';
import { taskEnvironment } from './task/environment.ts';

/** The section that configures the rules of each operation. */
const SECTIONS: Readonly<Record<Operation, string>> = {
  create: 'enforcement',
  update: 'enforcement',
  pod: 'kubernetes',
  task: 'skypilot',
};
const OPTION = 'rules_path';

/**
 * Reads the rules of one section. `operations`: those of the section. `settings`: the whole configuration, to
 * check other sections and Keystone; missing settings are unknown to this command.
 */
export function sectionProblems(
  path: string,
  operations: readonly Operation[],
  settings: readonly Setting[] = [],
  now = new Date(),
): readonly Problem[] {
  const environments = {
    create: leaseEnvironment('create'),
    update: leaseEnvironment('update'),
    pod: podEnvironment(),
    task: taskEnvironment(),
  };
  const [operation = 'create'] = operations;
  const unread = whyUnread(path);
  if (unread !== undefined) {
    const message = `expected a file or a folder that can be read, got ${path} (${unread})`;
    return [{ severity: 'error', section: SECTIONS[operation], option: OPTION, message }];
  }
  const { rules, named, problems } = readRules(path, environments, now);
  const own = operations.some((operation) => rules[operation].length > 0);
  const limitsNothing: Problem = {
    severity: 'warning',
    section: SECTIONS[operation],
    option: OPTION,
    message: `limits nothing: there is no rule for ${operations.join(' or ')} in ${path}`,
  };
  return withoutRepetitions([
    ...problems,
    ...(own || problems.some(({ severity }) => severity === 'error') ? [] : [limitsNothing]),
    ...named.flatMap((rule) => unjudged(rule, settings)),
    ...(isFalse(settings, 'keystone', 'resolve_names')
      ? [...rules.create, ...rules.update].flatMap(nameless)
      : []),
    ...(operations.includes('create') ? unchargedProblems([...rules.create, ...rules.update], settings) : []),
    ...[...rules.create, ...rules.update].flatMap((rule) => untyped(rule, settings)),
  ]);
}

/** A rule for two operations would repeat each problem. */
function withoutRepetitions(problems: readonly Problem[]): readonly Problem[] {
  return [...new Map(problems.map((one) => [JSON.stringify(one), one])).values()];
}

/** `undefined` = the path exists. */
function whyUnread(path: string): string | undefined {
  try {
    statSync(path);
    return undefined;
  } catch (thrown) {
    return systemErrorText(thrown);
  }
}

function unjudged({ name, on, file, line, column }: PlacedRule, settings: readonly Setting[]): Problem[] {
  return on
    .filter((operation) => !isJudged(SECTIONS[operation], file, settings))
    .map((operation) => ({
      severity: 'warning',
      origin: { kind: 'file', file, line, column },
      message: `rule ${name}: its ${operation}s are not judged: [${SECTIONS[operation]}] ${OPTION} does not name this file`,
    }));
}

function isJudged(section: string, file: string, settings: readonly Setting[]): boolean {
  const setting = settingOf(settings, section, OPTION);
  const knowsSection = settings.some(({ option }) => option.section === section);
  if (setting === undefined) {
    // An option of a missing filter or policy is unknown, too.
    return !knowsSection;
  }
  const named = typeof setting.value === 'string' ? resolve(setting.value) : undefined;
  return named === resolve(file) || named === resolve(dirname(file));
}

/** An unknown resource type, such as `host`: the rule would look right, but judge nothing. */
function untyped({ name, needs }: Rule, settings: readonly Setting[]): Problem[] {
  const others = namesIn(settings, 'resource_types');
  return needs.flatMap(({ of, text, place }): Problem[] => {
    const why = of === 'resource-type' ? whyNoType(text, [...RESOURCE_TYPES, ...others]) : undefined;
    const message = `rule ${name}: ${shown(text)} ${why}`;
    return why === undefined ? [] : [{ severity: 'error', origin: { kind: 'file', ...place }, message }];
  });
}

function nameless(rule: Rule): Problem[] {
  const { name, place, needs } = rule;
  const why = needsNames(rule);
  const exempt = needs
    .filter(({ of }) => of === 'keystone')
    .map((need): Problem => {
      // As for names in options.
      const mayBeId = !/\s/.test(need.text);
      return {
        severity: mayBeId ? 'warning' : 'error',
        origin: { kind: 'file', ...need.place },
        message: `rule ${name}: exempt: ${shown(need.text)} ${mayBeId ? 'applies only if it is an id' : 'would never apply'}: names need [keystone] resolve_names = true`,
      };
    });
  return why === undefined
    ? exempt
    : [
        ...exempt,
        {
          severity: 'error',
          origin: { kind: 'file', file: place.file, line: place.line },
          message: `rule ${name}: ${why} needs [keystone] resolve_names = true: without it, it is not known`,
        },
      ];
}

function isFalse(settings: readonly Setting[], section: string, name: string): boolean {
  const setting = settingOf(settings, section, name);
  return setting !== undefined && setting.value !== true;
}

function settingOf(settings: readonly Setting[], section: string, name: string): Setting | undefined {
  return settings.find(({ option }) => option.section === section && option.name === name);
}

/** A list in `[enforcement]`. */
function namesIn(settings: readonly Setting[], name: string): string[] {
  const { value } = settingOf(settings, 'enforcement', name) ?? {};
  return Array.isArray(value) ? value.map(String) : [];
}

/** The part of a rule that needs Keystone, such as `Project.name`; `undefined` = none. */
function needsNames({ match, allow, message, exempt }: Rule): string | undefined {
  for (const part of [match, allow, message]) {
    if (typeof part === 'object' && part.readName !== undefined) {
      return part.readName;
    }
  }
  return exempt.needsNames ? 'exempt by tag' : undefined;
}

const CHARGING = 'UsageBudgetFilter';
/** Filters of the package that charge no budgets; others may. */
export const NOT_CHARGING: ReadonlySet<string> = new Set([
  'ExternalServiceFilter',
  'LeaseDatesFilter',
  'MaxLeaseDurationFilter',
  'MaxLeasesFilter',
  'MaxReservationSizeFilter',
  'RulesFilter',
  'SchedulingPolicyFilter',
]);
const OF_BUDGETS: ReadonlySet<string> = new Set(['taken()', 'left()']);

/**
 * Rules that read budgets although no filter charges them. `leases()` needs no filter: leases are recorded
 * for the rule.
 */
function unchargedProblems(rules: readonly Rule[], settings: readonly Setting[]): Problem[] {
  const named = ['enabled_filters', 'audit_filters'].flatMap((name) => namesIn(settings, name));
  if (named.length === 0 || named.some((name) => !NOT_CHARGING.has(name))) {
    return [];
  }
  return rules.flatMap(({ name, needs }) =>
    needs
      .filter(({ of, text }) => of === 'ledger' && OF_BUDGETS.has(text))
      .map(
        ({ text, place }): Problem => ({
          severity: 'error',
          origin: { kind: 'file', ...place },
          message: `rule ${name}: ${text} reads budgets, and nothing charges leases to them: add ${CHARGING} to [enforcement] enabled_filters; leases() counts leases without it`,
        }),
      ),
  );
}
