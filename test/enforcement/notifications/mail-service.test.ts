/** The policy service with a mail server and a webhook, of which each may be away. */
import { expect, it } from 'vitest';
import { listOutbox } from '../../../src/ledger/outbox/reports.ts';
import { NO_WAIT, newLedger, openedLedger } from '../../support/ledgers.ts';
import { policyServer } from '../../support/policy-server.ts';
import { capturedText } from '../../support/requests.ts';
import { type RunningPolicyService, runServiceOn } from '../../support/running-service.ts';
import { eventIn } from './cloud-events.ts';
import { askForBudget, OPERATOR_TOKEN } from './facts.ts';
import { type MailServer, mailServer } from './mail-server.ts';

interface Receivers {
  readonly mailPort: number;
  readonly webhook?: string;
}

function running(connection: string, { mailPort, webhook }: Receivers): Promise<RunningPolicyService> {
  return runServiceOn({
    environment: {},
    configFiles: [],
    values: {
      service: { port: 0, operator_tokens: [OPERATOR_TOKEN] },
      ledger: { connection },
      enforcement: {
        enabled_filters: ['MaxLeaseDurationFilter', 'UsageBudgetFilter'],
        max_lease_duration: 60,
      },
      notifications: {
        smtp_url: `smtp://127.0.0.1:${mailPort}`,
        mail_from: 'blazar@example.org',
        mail_to: ['ops@example.org'],
        ...(webhook === undefined ? {} : { webhook_url: webhook }),
      },
    },
  });
}

/** Two steps of a request for more budget. */
async function twoSteps({ url }: RunningPolicyService): Promise<void> {
  const wish = { project_id: 'climate', amount: '40', valid_until: '2090-12-31', reason: 'a workshop' };
  const { id } = await askForBudget(url, '', wish);
  await askForBudget(url, `/${id}/endorse`, {});
}

const STATES = ['new', 'endorsed'];
const stepsIn = ({ mails }: MailServer) =>
  mails.map(({ headers }) => headers.get('subject')?.replace(/.*: /, ''));

/** What is not delivered, by sender. */
async function waiting(connection: string): Promise<string[]> {
  const ledger = await openedLedger(connection);
  return (await listOutbox(ledger, { limit: 100 }, NO_WAIT)).map(({ sender }) => sender);
}

it('sends each mail once from two replicas, in order, while the webhook is away', async () => {
  const connection = await newLedger();
  const server = await mailServer();
  const receivers = { mailPort: server.port, webhook: (await policyServer({ status: 503 })).url };
  const first = await running(connection, receivers);
  const second = await running(connection, receivers);
  await twoSteps(first);
  await expect.poll(() => server.mails).toHaveLength(2);
  await Promise.all([first.service.close(), second.service.close()]);
  expect(stepsIn(server)).toEqual(STATES);
  expect(new Set(server.mails.map(({ headers }) => headers.get('message-id'))).size).toBe(2);
  expect(await waiting(connection)).toEqual(['notifications', 'notifications']);
});

it('tells the webhook while the mail server is away, and sends the mails after a restart', async () => {
  const connection = await newLedger();
  const webhook = await policyServer({ status: 204 });
  let isAway = true;
  const server = await mailServer({
    onConnect: (_, done) => done(isAway ? Object.assign(new Error('not now'), { responseCode: 421 }) : null),
  });
  const receivers = { mailPort: server.port, webhook: webhook.url };
  const before = await running(connection, receivers);
  await twoSteps(before);
  await expect.poll(() => webhook.requests).toHaveLength(2);
  await before.service.close();
  expect(await waiting(connection)).toEqual(['notifications-mail', 'notifications-mail']);
  isAway = false;
  const after = await running(connection, receivers);
  await expect.poll(() => server.mails).toHaveLength(2);
  await after.service.close();
  expect(stepsIn(server)).toEqual(STATES);
  expect(webhook.requests).toHaveLength(2);
  expect(server.mails.map(({ headers }) => headers.get('message-id'))).toEqual(
    webhook.requests.map(({ body }) => `<${eventIn(body).id}@example.org>`),
  );
  expect(await waiting(connection)).toEqual([]);
});

it('sends no mail for a refused lease, and writes nothing for a webhook that is not set', async () => {
  const connection = await newLedger();
  const server = await mailServer();
  const only = await running(connection, { mailPort: server.port });
  const lease = capturedText('check-create-physical-host.json');
  expect(await only.post('/check-create', lease, { 'X-Auth-Token': OPERATOR_TOKEN })).toMatchObject({
    status: 403,
  });
  await twoSteps(only);
  await expect.poll(() => server.mails).toHaveLength(2);
  await only.service.close();
  expect(stepsIn(server)).toEqual(STATES);
  expect(await waiting(connection)).toEqual([]);
});
