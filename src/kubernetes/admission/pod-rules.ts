/** Checks pods with the rules of `[kubernetes] rules_path`. */
import { isDeepStrictEqual } from 'node:util';
import { ConfigurationError } from '../../base/errors.ts';
import type { Logger } from '../../base/logger.ts';
import type { RuleObserver } from '../../filter/services.ts';
import type { RuleOutcomes } from '../../filter/verdict.ts';
import { explainRule } from '../../rules/explain-rule.ts';
import {
  brokenIn,
  type Judgement,
  type RuleFailure,
  RuleJudge,
  ruleFailureText,
  soundOutcomes,
  type Violation,
} from '../../rules/judge.ts';
import { podEnvironment } from '../../rules/pod/environment.ts';
import { isNotYetKnown, PodActivation } from '../../rules/pod/pod-view.ts';
import { readRules } from '../../rules/read-rules.ts';
import type { Exemption, Rule } from '../../rules/rule.ts';
import type { Pod } from '../policies/pod.ts';
import type { PodRequest } from './admission-review.ts';

interface PodRulesOptions {
  readonly logger?: Pick<Logger, 'warn'> | undefined;
  readonly now?: () => Date;
  /** Receives the result of every rule. Default: none. */
  readonly observer?: RuleObserver | undefined;
}

/** Controllers of Kubernetes, and service accounts. */
const SYSTEM = 'system:';

export class PodRules {
  readonly #judge: RuleJudge;
  readonly #options: PodRulesOptions;

  constructor(rules: readonly Rule[], options: PodRulesOptions = {}) {
    this.#judge = new RuleJudge(rules);
    this.#options = options;
    options.observer?.rulesRead(rules);
  }

  /** @throws ConfigurationError with all mistakes */
  static read(path: string, options?: PodRulesOptions): PodRules {
    const { rules, problems } = readRules(path, { pod: podEnvironment() });
    const mistakes = problems.filter(({ severity }) => severity === 'error');
    if (mistakes.length > 0) {
      throw new ConfigurationError(
        mistakes.map((one) => (one.origin === undefined ? { ...one, ...OPTION } : one)),
      );
    }
    return new PodRules(rules.pod, options);
  }

  get enforces(): boolean {
    return this.#judge.rules.some(({ audit }) => !audit);
  }

  /**
   * Every rule that rejects, or fails in audit mode. `pod`: with the policies' additions. `workload`: the
   * kind of object whose controller will create the pod; a rule that needs unknown facts of such a pod is
   * skipped, since it checks the pod itself. @throws BrokenRulesError if a rule cannot be evaluated
   */
  judge(request: PodRequest, pod: Pod, workload?: string): RuleOutcomes {
    if (!concerns(request, pod)) {
      return [];
    }
    const { isUpdate, kind, namespace, username, groups } = request;
    const { now = () => new Date(), observer } = this.#options;
    const time = now();
    const isLater = workload !== undefined;
    const activation = new PodActivation({
      pod,
      namespace,
      username,
      groups,
      now: time,
      isLater,
      operation: isUpdate ? 'update' : 'create',
      kind: workload ?? (kind === 'template' ? 'DaemonSet' : 'Pod'),
    });
    const judged = this.#judge.judge(
      activation,
      ({ userNames }) => (isLater ? mayExempt(userNames) : username !== undefined && userNames.has(username)),
      time.getTime(),
      observer && ((rule, said) => observer.ruleJudged(rule, said, () => explainRule(rule, activation))),
    );
    return this.#answer(isLater ? known(judged) : judged);
  }

  #answer(judgement: Judgement): RuleOutcomes {
    const said = soundOutcomes(judgement);
    for (const failure of brokenIn(judgement)) {
      this.#options.logger?.warn({ rule: failure.rule.name, error: ruleFailureText(failure) }, 'rule failed');
    }
    return said;
  }
}

const OPTION = { section: 'kubernetes', option: 'rules_path' } as const;

/** A controller will create the pod, and may be exempt. */
function mayExempt(names: Exemption['userNames']): boolean {
  return [...names].some((name) => name.startsWith(SYSTEM));
}

/** Without the rules that need unknown facts. If only the message needs them, the rule refuses. */
function known({ violations, failures }: Judgement): Judgement {
  const isUnknown = ({ cause }: RuleFailure) => isNotYetKnown(cause);
  return {
    violations: violations.map(
      ({ rule, message, unsaid }): Violation =>
        unsaid !== undefined && isUnknown(unsaid)
          ? { rule, message: `The rule ${rule.name} refuses them.` }
          : { rule, message, ...(unsaid && { unsaid }) },
    ),
    failures: failures.filter((one) => !isUnknown(one)),
  };
}

/** Unchanged parts were checked before. */
function concerns({ current }: PodRequest, pod: Pod): boolean {
  return current === undefined || !isDeepStrictEqual(judgedPart(pod), judgedPart(current));
}

/**
 * Without the node, which the scheduler sets, and without finalizers and the like, which controllers must be
 * able to remove from any pod. A pod that is being deleted may run for its whole grace period: it is no
 * exception.
 */
function judgedPart({ metadata, spec }: Pod) {
  const { nodeName, ...rest } = spec;
  const { labels, annotations } = metadata ?? {};
  return { rest, labels: labels ?? {}, annotations: annotations ?? {} };
}
