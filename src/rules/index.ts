/** blazar-enforcement/rules: rules without code. Start at `readRules` and `RuleJudge`. */

export { ConfigurationError } from '../base/errors.ts';
export { BrokenRulesError } from '../filter/verdict.ts';
export {
  type Attribute,
  type Documented,
  type ObjectType,
  objectType,
  RuleEnvironment,
} from './cel/environment.ts';
export { EvaluationError, Failure, MAX_STEPS, Meter, TooManyStepsError } from './cel/frame.ts';
export { Duration, fromJson, JsonList, JsonMap, Timestamp } from './cel/values.ts';
export { explainRule } from './explain-rule.ts';
export { type Compiled, compileExpression, type ExplainedPart, type Expression } from './expression.ts';
export {
  brokenIn,
  type IsExempt,
  type Judgement,
  type RuleFailure,
  RuleJudge,
  reasonOf,
  ruleFailureText,
  ruleOutcomes,
  /** @deprecated The name of `ruleOutcomes` in version 1.0. */
  ruleOutcomes as saidBy,
  soundOutcomes,
  type Violation,
} from './judge.ts';
export { leaseEnvironment } from './lease/environment.ts';
export {
  judgeHalfway,
  judgeWithoutLedger,
  /** @deprecated The name of `judgeWithoutLedger` in version 1.0. */
  judgeWithoutLedger as judgeRegardless,
  leaseExemption,
} from './lease/judgements.ts';
export { LeaseActivation, type LeaseRequestParts, requestIn } from './lease/request-view.ts';
export { podEnvironment } from './pod/environment.ts';
export { PodActivation, type PodRequestParts } from './pod/pod-view.ts';
export { type ReadRules, readRules } from './read-rules.ts';
export { type Operation, type Rule, type RuleSet, readsLedger } from './rule.ts';
export type { Environments } from './rule-file.ts';
export { sectionProblems } from './section-problems.ts';
export {
  MAX_WAYS,
  TaskActivation,
  type TaskRequestParts,
  type TaskResources,
  taskEnvironment,
} from './task/environment.ts';
