import { z } from 'zod';
import {
  allow,
  BaseFilter,
  type Call,
  type Claims,
  ConfigurationError,
  type Context,
  type Lease,
  type LeaseRequest,
  type OptionsCheck,
  type Problem,
  type ProjectState,
  type Proposal,
  type RuleAnswer,
  reject,
  type SectionProblem,
  type SharedLimit,
  type Verdict,
} from '../src/index.ts';
import type { Judgement, LeaseRequestParts, Rule, RuleJudge } from '../src/rules/index.ts';

const options = z.object({
  rules_path: z.string().optional().meta({
    serverOnly: true,
    watched: true,
    description:
      'A YAML file, or a folder of them, with rules: expressions that must be true for a lease to be allowed.',
  }),
});

type Options = z.infer<typeof options>;

/** By operation. `undefined` = no such rules. */
interface LeaseRules<None = never> {
  readonly create: RuleJudge | None;
  readonly update: RuleJudge | None;
}

/** Loaded when the filter is opened: loading YAML and CEL earlier would delay every command. */
interface Opened {
  readonly rules: LeaseRules;
  /** Rules that read the ledger. */
  readonly reading: LeaseRules<undefined>;
  readonly library: typeof import('../src/rules/index.ts');
}

/** Checks leases with rules that an operator wrote as expressions. */
export class RulesFilter extends BaseFilter<Options> {
  static override readonly options = options;
  static override readonly check = ruleProblems;

  #opened: Opened | undefined;
  /** Rules with an end, the next to end first. */
  #ending: Rule[] = [];
  /** Logged rules: a request is checked several times. */
  readonly #told = new WeakMap<Call, Set<string>>();
  /**
   * Claims of rules that read the ledger. Set only if there are such rules: then the ledger records leases
   * for this filter.
   */
  claims?: SharedLimit['claims'];
  readonly readsProject = true;

  override async open(): Promise<void> {
    const library = await import('../src/rules/index.ts');
    const { rules_path = '' } = this.options;
    const { rules, mistakes } = readFrom(library, rules_path, this.services.clock.now());
    if (mistakes.length > 0) {
      throw new ConfigurationError(mistakes);
    }
    const judgeOf = (some: readonly Rule[]) => new library.RuleJudge(some);
    const readingOf = (some: readonly Rule[]) => {
      const reading = some.filter(library.readsLedger);
      return reading.length === 0 ? undefined : judgeOf(reading);
    };
    const reading = { create: readingOf(rules.create), update: readingOf(rules.update) };
    this.#opened = {
      rules: { create: judgeOf(rules.create), update: judgeOf(rules.update) },
      reading,
      library,
    };
    this.#ending = endingRules([...rules.create, ...rules.update], this.services.clock.now());
    const first = reading.create?.rules[0] ?? reading.update?.rules[0];
    if (first !== undefined) {
      await this.services.ledger.open().catch((thrown: unknown) => {
        throw thrown instanceof ConfigurationError ? withReaders(thrown, first) : thrown;
      });
      this.claims = (proposal, state) => this.#claims(proposal, state, reading);
    }
    this.services.ruleObserver?.rulesRead([...new Set([...rules.create, ...rules.update])]);
  }

  checkCreate(context: Context, lease: Lease, call: Call): Verdict | Promise<Verdict> {
    return this.#check('create', { context, lease }, call);
  }

  checkUpdate(context: Context, currentLease: Lease, lease: Lease, call: Call): Verdict | Promise<Verdict> {
    return this.#check('update', { context, currentLease, lease }, call);
  }

  #check(operation: 'create' | 'update', request: LeaseRequest, call: Call): Verdict | Promise<Verdict> {
    const { rules, reading } = this.#read();
    return reading[operation] === undefined
      ? this.#judge(rules[operation], this.#partsOf(operation, request, call), call)
      : this.#askLedger(operation, request, call);
  }

  #partsOf(operation: 'create' | 'update', request: LeaseRequest, { names }: Call): LeaseRequestParts {
    const { context, lease, currentLease } = request;
    return { operation, context, lease, currentLease, names, now: this.services.clock.now() };
  }

  onEnd(context: Context, lease: Lease, call: Call): void | Promise<void> {
    return this.claims && this.services.ledger.end({ context, lease }, call);
  }

  /** Evaluates all rules, with the ledger's data. The commit repeats those that read the ledger. */
  async #askLedger(operation: 'create' | 'update', request: LeaseRequest, call: Call): Promise<Verdict> {
    const { rules } = this.#read();
    let said: Verdict['rules'];
    const limit: SharedLimit = {
      claims: (proposal, state) => {
        const verdict = this.#verdictIn(proposal, state, rules, call);
        said = verdict.rules;
        return verdict.allowed ? [] : reject(verdict.message);
      },
      readsProject: true,
      regardless: () => {
        const verdict = this.#regardless(rules[operation], this.#partsOf(operation, request, call), call);
        said = verdict?.rules;
        return verdict;
      },
    };
    const verdict = await this.services.ledger.check(limit, request, call);
    return said === undefined ? verdict : { ...verdict, rules: said };
  }

  #claims(proposal: Proposal, state: ProjectState, rules: LeaseRules<undefined>): Claims {
    const verdict = this.#verdictIn(proposal, state, rules);
    return verdict.allowed ? [] : verdict;
  }

  /** `undefined` unless rules are tested: then evaluation costs nothing more. */
  #observe(activation: object): ((rule: Rule, said: RuleAnswer) => void) | undefined {
    const { ruleObserver } = this.services;
    const { library } = this.#read();
    return (
      ruleObserver &&
      ((rule, said) => ruleObserver.ruleJudged(rule, said, () => library.explainRule(rule, activation)))
    );
  }

  /** `call`: from a check. A commit evaluates again, and does not log again what the check has logged. */
  #verdictIn(proposal: Proposal, state: ProjectState, rules: LeaseRules<undefined>, call?: Call): Verdict {
    const parts = this.#read().library.requestIn(proposal, state);
    if (parts === undefined) {
      return allow();
    }
    const judge = rules[parts.operation];
    return judge === undefined ? allow() : this.#judge(judge, parts, call);
  }

  /** The verdict for any state of the ledger; `undefined` = it depends. */
  #regardless(judge: RuleJudge, parts: LeaseRequestParts, call: Call): Verdict | undefined {
    const { library } = this.#read();
    const { context } = parts;
    const exempt = library.leaseExemption(context, parts.names);
    const judgement = library.judgeWithoutLedger(judge, parts, exempt, (activation, rule, said) =>
      this.#observe(activation)?.(rule, said),
    );
    const verdict = this.#verdictOf(judgement, context, call);
    if (!verdict.allowed) {
      return verdict;
    }
    const halfway = library.judgeHalfway(parts, (left) => library.judgeWithoutLedger(judge, left, exempt));
    const after = this.#verdictHalfway(verdict, halfway, context, call);
    const isOpen = judgement.open.length > 0 || (typeof halfway === 'object' && halfway.open.length > 0);
    return after.allowed && isOpen ? undefined : after;
  }

  /** Logs the end of a rule not when it ends, but before the first request after it. */
  #tellEnded(now: Date): void {
    for (let [next] = this.#ending; (next?.until ?? Infinity) <= now.getTime(); [next] = this.#ending) {
      const { name: rule = '' } = this.#ending.shift() ?? {};
      const { file, line } = next?.place ?? {};
      this.services.logger.info({ rule, file, line }, 'a rule has ended and is no longer applied');
    }
  }

  /** Whether this is not yet logged for this request. */
  #isNews(call: Call | undefined, rule: string): boolean {
    if (call === undefined) {
      return false;
    }
    const told = this.#told.get(call) ?? new Set();
    this.#told.set(call, told);
    return told.size < told.add(rule).size;
  }

  #read(): Opened {
    if (this.#opened === undefined) {
      throw new Error('the rules have not been read');
    }
    return this.#opened;
  }

  #judge(judge: RuleJudge, parts: LeaseRequestParts, call: Call | undefined): Verdict {
    const { library } = this.#read();
    this.#tellEnded(parts.now);
    const { context, names, now } = parts;
    const activation = new library.LeaseActivation(parts);
    const exempt = library.leaseExemption(context, names);
    const judgement = judge.judge(activation, exempt, now.getTime(), this.#observe(activation));
    const verdict = this.#verdictOf(judgement, context, call);
    const halfway = verdict.allowed
      ? library.judgeHalfway(parts, (left) =>
          judge.judge(new library.LeaseActivation(left), exempt, now.getTime()),
        )
      : undefined;
    return this.#verdictHalfway(verdict, halfway, context, call);
  }

  /** The verdict of an update that is allowed, unless rules do not allow what it leaves if it fails halfway. */
  #verdictHalfway(
    verdict: Verdict,
    halfway: Judgement | 'too many' | undefined,
    context: Context,
    call: Call | undefined,
  ): Verdict {
    if (halfway === undefined) {
      return verdict;
    }
    if (halfway === 'too many') {
      return reject('The change is too large to be judged. Change fewer reservations at a time.');
    }
    const left = this.#verdictOf(halfway, context, call);
    return left.allowed
      ? verdict
      : {
          ...left,
          message: `If the change failed halfway, it would leave a lease that is not allowed: ${left.message} Make several changes, first those that make the lease smaller.`,
        };
  }

  #verdictOf(judgement: Judgement, { project_id }: Context, call: Call | undefined): Verdict {
    const { library } = this.#read();
    const { violations, failures } = judgement;
    if (violations.length === 0 && failures.length === 0) {
      return allow();
    }
    const said = library.soundOutcomes(judgement);
    for (const failure of library.brokenIn(judgement)) {
      const { name: rule } = failure.rule;
      const error = library.ruleFailureText(failure);
      if (this.#isNews(call, rule)) {
        this.services.logger.warn({ filter: this.constructor.name, rule, project_id, error }, 'rule failed');
      }
    }
    const message = library.reasonOf(violations);
    return message === undefined ? { allowed: true, rules: said } : { allowed: false, message, rules: said };
  }
}

/** Each name once, the next to end first. */
function endingRules(rules: readonly Rule[], now: Date): Rule[] {
  const ending = rules.filter(({ until }) => until !== undefined && until > now.getTime());
  return [...new Map(ending.map((rule) => [rule.name, rule])).values()].sort(
    (a, b) => (a.until ?? 0) - (b.until ?? 0),
  );
}

/** Adds the rule because of which the filter needs the ledger. */
function withReaders({ problems }: ConfigurationError, { name, needs }: Rule): ConfigurationError {
  const [read] = needs.filter(({ of }) => of === 'ledger');
  return new ConfigurationError([
    ...problems,
    ...(read === undefined
      ? []
      : [
          {
            severity: 'error' as const,
            origin: { kind: 'file' as const, ...read.place },
            message: `rule ${name}: ${read.text} reads the ledger, which cannot be used`,
          },
        ]),
  ]);
}

function readFrom(library: typeof import('../src/rules/index.ts'), path: string, now: Date) {
  const environments = {
    create: library.leaseEnvironment('create'),
    update: library.leaseEnvironment('update'),
  };
  const { rules, problems } = library.readRules(path, environments, now);
  return { rules, mistakes: problems.filter(({ severity }) => severity === 'error') };
}

async function ruleProblems(
  { rules_path }: Options,
  settings?: Parameters<OptionsCheck>[1],
): Promise<readonly (Problem | SectionProblem)[]> {
  if (rules_path === undefined || rules_path === '') {
    return [{ option: 'rules_path', message: 'expected a file or a folder, got nothing' }];
  }
  const { sectionProblems } = await import('../src/rules/index.ts');
  return sectionProblems(rules_path, ['create', 'update'], settings);
}
