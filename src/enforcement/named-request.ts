import type { RequestNames } from '../filter/request-names.ts';
import type { Decision, EndReport } from '../filter/verdict.ts';
import type { Context } from '../lease/lease.ts';
import type { Names } from '../openstack/names.ts';
import type { CheckOptions } from './check-options.ts';

/** Does some work with the names of project and user, which its answer then has too. Without `names` it costs nothing. */
export function withNames<Answer extends Decision | EndReport>(
  names: Names | undefined,
  context: Context,
  { deadline }: Pick<CheckOptions, 'deadline'>,
  work: (names: RequestNames | undefined) => Answer | Promise<Answer>,
): Answer | Promise<Answer> {
  if (names === undefined) {
    return work(undefined);
  }
  const named = (found: RequestNames) => {
    // The answer is a new object, which nobody else has yet: copying it would cost as much as finding the names.
    const withFound = (answer: Answer) => Object.assign(answer, { names: found });
    const answer = work(found);
    return answer instanceof Promise ? answer.then(withFound) : withFound(answer);
  };
  const found = names.of(context, deadline);
  // Awaiting names that are known would cost more than finding them.
  return found instanceof Promise ? found.then(named) : named(found);
}
