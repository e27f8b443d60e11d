/**
 * blazar-enforcement: usage enforcement for reservable clouds. The exports of the package.
 *
 * To embed it in a lease service, start at `UsageEnforcement`. To write a filter, start at `BaseFilter`.
 */

export { type Deadline, type Wait, withinDeadline } from './base/deadline.ts';
export {
  ConfigurationError,
  EnforcementClosedError,
  formatProblem,
  InvalidRequestError,
  LedgerUnavailableError,
  type Origin,
  type Problem,
} from './base/errors.ts';
export { createLogger, type Logger, type LogLevel } from './base/logger.ts';
export type { OptionsCheck, SectionProblem } from './config/option-groups.ts';
export type { ConfigSources } from './config/sources.ts';
export {
  type BudgetChangeAuthor,
  BudgetLedger,
  type BudgetLedgerServices,
} from './enforcement/budget-ledger.ts';
export type { CheckOptions } from './enforcement/chain/hook.ts';
export { UsageEnforcement } from './enforcement/enforcement.ts';
export type { EstimateOptions } from './enforcement/estimate/trial.ts';
export type { Estimate, EstimatedCharge, Suggestion } from './enforcement/estimate/ways.ts';
export type { EnforcementServices } from './enforcement/services.ts';
export {
  type Account,
  type AccountLimit,
  AccountLimits,
  AccountList,
  accountText,
  projectOf,
  userOf,
} from './filter/account-limits.ts';
export { BaseFilter, LedgerFilter } from './filter/base-filter.ts';
export { type BudgetedUsage, budgetClaims } from './filter/budget-claims.ts';
export type {
  Claim,
  Claims,
  HeldClaim,
  OtherLeases,
  Precision,
  ProjectState,
  Proposal,
  SharedLimit,
  Shortage,
  UsageClaim,
} from './filter/claim.ts';
export {
  type Amount,
  type Budget,
  budgetAccount,
  formatUnitHours,
  parseMillionths,
} from './filter/claim.ts';
export type {
  Delivery,
  EndMessage,
  Outbox,
  OutboxMessage,
  OutboxSender,
  OutboxService,
} from './filter/outbox.ts';
export {
  deliveryOf,
  type KeyedCall,
  keyed,
  RETRY_AFTER,
  ServiceAnswers,
  type ServiceAnswersParts,
  ServiceCalls,
  withKeystoneToken,
} from './filter/service-calls.ts';
export {
  endpointBelow,
  endpointOption,
  maxAgeOption,
  pemFileOption,
  requireCertificateWithKey,
  timeoutOption,
  tlsFrom,
  tokenHeaders,
  tokenOption,
} from './filter/service-options.ts';
export type {
  Clock,
  FilterServices,
  LeaseRequest,
  LedgerService,
  ObservedRule,
  RuleAnswer,
  RuleExplanation,
  RuleObserver,
  ServiceTokens,
  SharedServices,
} from './filter/services.ts';
export type { Call, Named, RequestNames } from './filter/verdict.ts';
export {
  allow,
  allowOnError,
  type Decision,
  type EndReport,
  type Outcome,
  type Rejection,
  type RuleOutcome,
  reject,
  type Verdict,
} from './filter/verdict.ts';
export { HttpCallError } from './http/call-error.ts';
export type { HttpAnswer, HttpClient, HttpClientOptions, HttpObserver } from './http/contract.ts';
export { type ContextDetails, formatContext, formatLease } from './lease/blazar-format.ts';
export {
  type DateValue,
  formatDuration,
  formatInstant,
  type Instant,
  leaseEnd,
  leaseStart,
  MICROSECONDS_PER_SECOND,
  toInstant,
} from './lease/dates.ts';
export {
  type Allocation,
  type Context,
  type CreateRequest,
  type EndRequest,
  hasSoundCounts,
  type Lease,
  leasesHalfway,
  type Reservation,
  reservationSize,
  reservationsAfterUpdate,
  type UpdateRequest,
} from './lease/lease.ts';
export {
  formatResourceProperties,
  type PropertyOperator,
  type PropertyRequirement,
  parseResourceProperties,
} from './lease/resource-properties.ts';
export { BudgetConflictError, type BudgetUsage } from './ledger/budgets/budgets.ts';
export type { BudgetKey, NewBudget } from './ledger/budgets/terms.ts';
export type { LedgerObserver, LedgerOperation } from './ledger/transactions/transaction.ts';
