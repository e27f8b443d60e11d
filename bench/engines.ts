/** What is the same for every rule that other engines decide. */
import { setFlagsFromString } from 'node:v8';
import type { Enforcer } from 'casbin';
import type { CreateRequest } from '../src/index.ts';

/** Decides a request in the form that an engine expects: no conversion is timed that only the bench needs. */
type Decide = (request: CreateRequest) => boolean | Promise<boolean>;
type Context = Readonly<Record<string, string | number | string[]>>;

/** Parses the policies. `more`: what they read of a request, besides its dates. */
export async function cedar(
  staticPolicies: string,
  more: (request: CreateRequest) => Context = () => ({}),
): Promise<Decide> {
  // V8 of Node.js 20 ends the process when it deoptimizes an inlined call into WebAssembly.
  setFlagsFromString('--no-turbo-inline-js-wasm-calls');
  const { preparsePolicySet, statefulIsAuthorized } = await import('@cedar-policy/cedar-wasm/nodejs');
  const parsed = preparsePolicySet('bench', { staticPolicies });
  if (parsed.type === 'failure') {
    throw new Error(parsed.errors.map(({ message }) => message).join('; '));
  }
  return (request) => {
    const { context, lease } = request;
    const answer = statefulIsAuthorized({
      principal: { type: 'Project', id: context.project_id },
      action: { type: 'Action', id: 'create' },
      resource: { type: 'Lease', id: 'new' },
      context: { start: seconds(lease.start_date), end: seconds(lease.end_date), ...more(request) },
      preparsedPolicySetId: 'bench',
      validateRequest: false,
      entities: [],
    });
    return answer.type === 'success' && answer.response.decision === 'allow';
  };
}

/** Both ways in which casbin is asked. */
export function casbin(
  newEnforcer: () => Promise<Enforcer>,
): Readonly<Record<'casbin, enforce' | 'casbin, enforceSync', () => Promise<Decide>>> {
  return {
    async 'casbin, enforce'() {
      const enforcer = await newEnforcer();
      return ({ context, lease }) => enforcer.enforce(context, lease);
    },
    async 'casbin, enforceSync'() {
      const enforcer = await newEnforcer();
      return ({ context, lease }) => enforcer.enforceSync(context, lease);
    },
  };
}

/** The fastest possible parser, sufficient for these dates: UTC with whole seconds. */
export function seconds(date: unknown): number {
  return Date.parse(`${date}Z`) / 1000;
}
