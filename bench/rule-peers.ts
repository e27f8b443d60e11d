/** The ten rules of rule-texts.ts in other engines. */
import type { CreateRequest } from '../src/index.ts';
import { casbin, cedar, seconds } from './engines.ts';
import { TEN_RULES } from './rule-texts.ts';

/** Decides a request in the engine's own format. */
export type DecideByRules = (request: CreateRequest) => boolean | Promise<boolean>;

const HOUR = 3600;
const SOME_PROJECT = '9a1c5b1f5d7a4c0c8a6f0d6b7f3e2d10';
const SOME_USERS = ['3d9b1f0c6a774f3fb1d5b0a1c2e4f697', SOME_PROJECT];
const MAINTENANCE = [seconds('2027-07-20T00:00:00'), seconds('2027-07-24T00:00:00')] as const;
const LAST_START = seconds('2027-12-31T00:00:00');

export const RULE_PEERS: Readonly<Record<string, () => Promise<DecideByRules>>> = {
  'cedar-wasm'() {
    const conditions = [
      `context.end - context.start > ${48 * HOUR}`,
      'context.hosts > 4',
      `(context.end - context.start) * context.hosts > ${96 * HOUR}`,
      '!(["physical:host"].containsAll(context.resource_types))',
      `context.start < ${MAINTENANCE[1]} && context.end > ${MAINTENANCE[0]}`,
      `context.start >= ${LAST_START}`,
      '!(["RegionOne", "RegionTwo", "RegionThree"].contains(context.region))',
      `${JSON.stringify(SOME_USERS)}.contains(context.user)`,
      `principal == Project::"${SOME_PROJECT}" && context.end - context.start > ${24 * HOUR}`,
      'context.name == "" || context.name like "test-*"',
    ];
    const policies = conditions.map((one) => `forbid (principal, action, resource) when { ${one} };`);
    const all = ['permit (principal, action, resource);', ...policies].join('\n');
    return cedar(all, ({ context, lease }) => ({
      hosts: hostsOf(lease),
      resource_types: [...new Set(lease.reservations?.map((one) => String(one.resource_type)))],
      region: context.region_name ?? '',
      user: context.user_id,
      name: String(lease.name),
    }));
  },

  ...casbin(casbinEnforcer),

  async 'cel-js, evaluate'() {
    const { Environment } = await import('@marcbachmann/cel-js');
    const environment = new Environment({ unlistedVariablesAreDyn: false })
      .registerVariable('lease', 'map<string, dyn>')
      .registerVariable('context', 'map<string, dyn>')
      .registerVariable('reservations', 'list<map<string, dyn>>')
      .registerFunction('hours(map<string, dyn>): double', ({ start_date, end_date }: Dated) => {
        return (end_date.getTime() - start_date.getTime()) / 3_600_000;
      })
      .registerFunction('size(map<string, dyn>, string): int', ({ reservations }: Dated, type: string) => {
        let total = 0;
        for (const { resource_type, max } of reservations) {
          total += resource_type === type ? Number(max) : 0;
        }
        return BigInt(total);
      })
      .registerFunction(
        'overlaps(map<string, dyn>, string, string): bool',
        ({ start_date, end_date }: Dated, from: string, until: string) =>
          start_date.getTime() < Date.parse(until) + 24 * HOUR * 1000 &&
          end_date.getTime() > Date.parse(from),
      );
    const rules = TEN_RULES.map((rule) => environment.parse(rule));
    return ({ context, lease }) => {
      const reservations = lease.reservations ?? [];
      const activation = {
        context: { ...context, region: context.region_name },
        lease: {
          name: lease.name,
          start_date: new Date(seconds(lease.start_date) * 1000),
          end_date: new Date(seconds(lease.end_date) * 1000),
          reservations,
        },
        reservations,
      };
      let allowed = true;
      for (const rule of rules) {
        // Evaluates every rule, like ours.
        allowed = rule(activation) === true && allowed;
      }
      return allowed;
    };
  },
};

interface Dated {
  readonly start_date: Date;
  readonly end_date: Date;
  readonly reservations: readonly Readonly<Record<string, unknown>>[];
}

async function casbinEnforcer() {
  const { newEnforcer, newModelFromString } = await import('casbin');
  const conditions = [
    `length(r.lease) <= ${48 * HOUR}`,
    'hosts(r.lease) <= 4',
    `length(r.lease) * hosts(r.lease) <= ${96 * HOUR}`,
    'onlyHosts(r.lease)',
    `(seconds(r.lease.start_date) >= ${MAINTENANCE[1]} || seconds(r.lease.end_date) <= ${MAINTENANCE[0]})`,
    `seconds(r.lease.start_date) < ${LAST_START}`,
    `(r.context.region_name == "RegionOne" || r.context.region_name == "RegionTwo" || r.context.region_name == "RegionThree")`,
    ...SOME_USERS.map((user) => `r.context.user_id != "${user}"`),
    `(r.context.project_id != "${SOME_PROJECT}" || length(r.lease) <= ${24 * HOUR})`,
    'r.lease.name != "" && !isTest(r.lease.name)',
  ];
  const enforcer = await newEnforcer(
    newModelFromString(`
      [request_definition]
      r = context, lease
      [policy_definition]
      p = sub
      [policy_effect]
      e = some(where (p.eft == allow))
      [matchers]
      m = ${conditions.join(' && ')}
    `),
  );
  await enforcer.addFunction('seconds', seconds);
  await enforcer.addFunction(
    'length',
    ({ start_date, end_date }: CreateRequest['lease']) => seconds(end_date) - seconds(start_date),
  );
  await enforcer.addFunction('hosts', hostsOf);
  await enforcer.addFunction('isTest', (name: string) => name.startsWith('test-'));
  await enforcer.addFunction(
    'onlyHosts',
    ({ reservations }: CreateRequest['lease']) =>
      reservations?.every(({ resource_type }) => resource_type === 'physical:host') ?? true,
  );
  return enforcer;
}

function hostsOf({ reservations }: CreateRequest['lease']): number {
  let hosts = 0;
  for (const { resource_type, max } of reservations ?? []) {
    hosts += resource_type === 'physical:host' ? Number(max) : 0;
  }
  return hosts;
}
