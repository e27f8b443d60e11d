import { z } from 'zod';
import type { RuleJudge } from '../src/rules/index.ts';
import {
  AdminPolicy,
  MutatedUserRequest,
  namesOfUser,
  type OptionsCheck,
  PolicyRejected,
  type UserRequest,
  waysOfTask,
} from '../src/skypilot/index.ts';

const options = z.object({
  rules_path: z.string().optional().meta({
    watched: true,
    description:
      'A YAML file, or a folder of them, with rules; those with on: task must be true for a request to be allowed. It may be the file of [enforcement] rules_path.',
  }),
});

type Options = z.infer<typeof options>;

interface Opened {
  readonly judge: RuleJudge;
  readonly library: typeof import('../src/rules/index.ts');
}

/** Checks requests with rules that an operator wrote as expressions. */
export class RulesPolicy extends AdminPolicy<Options> {
  static override readonly options = options;
  static override readonly check = ruleProblems;

  #opened: Opened | undefined;

  override async open(): Promise<void> {
    const library = await import('../src/rules/index.ts');
    const environments = { task: library.taskEnvironment() };
    const { rules, problems } = library.readRules(
      this.options.rules_path ?? '',
      environments,
      this.services.clock.now(),
    );
    const mistakes = problems.filter(({ severity }) => severity === 'error');
    if (mistakes.length > 0) {
      throw new library.ConfigurationError(mistakes);
    }
    this.services.ruleObserver?.rulesRead(rules.task);
    this.#opened = { judge: new library.RuleJudge(rules.task), library };
  }

  override validateAndMutate(request: UserRequest): MutatedUserRequest {
    if (this.#opened === undefined) {
      throw new Error('the rules have not been read');
    }
    const { judge, library } = this.#opened;
    const { task, skypilotConfig, requestName, requestOptions, atClientSide, user } = request;
    const now = this.services.clock.now();
    const activation = new library.TaskActivation({
      ...waysOfTask(request, library.MAX_WAYS),
      requestName,
      clusterName: requestOptions?.clusterName ?? undefined,
      atClientSide,
      dryrun: requestOptions?.dryrun === true,
      user: user ?? undefined,
      now,
    });
    const names = user === null ? [] : namesOfUser(user);
    const { ruleObserver } = this.services;
    const judgement = judge.judge(
      activation,
      ({ userNames }) => names.some((name) => userNames.has(name)),
      now.getTime(),
      ruleObserver &&
        ((rule, answer) =>
          ruleObserver.ruleJudged(rule, answer, () => library.explainRule(rule, activation))),
    );
    const { violations } = judgement;
    const said = library.saidBy(judgement);
    const broken = judgement.failures.filter(({ rule }) => !rule.audit);
    if (broken.length > 0) {
      throw new library.BrokenRulesError(broken.map(library.ruleFailureText).join('; '), said);
    }
    this.#logTried(
      violations.flatMap(({ rule, message }) => (rule.audit ? [{ rule: rule.name, message }] : [])),
      library
        .brokenIn(judgement)
        .map((failure) => ({ rule: failure.rule.name, error: library.ruleFailureText(failure) })),
    );
    const reason = library.reasonOf(violations);
    if (reason !== undefined) {
      throw new PolicyRejected(reason, { rules: said });
    }
    return new MutatedUserRequest(task, skypilotConfig, said);
  }

  #logTried(violations: readonly object[], failures: readonly object[]): void {
    const policy = this.constructor.name;
    for (const one of violations) {
      this.services.logger.warn({ policy, ...one }, 'a rule in audit mode would have rejected the request');
    }
    for (const one of failures) {
      this.services.logger.warn({ policy, ...one }, 'rule failed');
    }
  }
}

async function ruleProblems({ rules_path }: Options, settings?: Parameters<OptionsCheck>[1]) {
  if (rules_path === undefined || rules_path === '') {
    return [{ option: 'rules_path', message: 'expected a file or a folder, got nothing' }];
  }
  const { sectionProblems } = await import('../src/rules/index.ts');
  return sectionProblems(rules_path, ['task'], settings);
}
