/** Refusals of leases, for the receiver in `[notifications]`. Those of SkyPilot tasks and pods are not told: their clients try again. */
import type { DecisionRecord } from '../../decisions/record.ts';
import type { Notifications } from '../../notifications/notifications.ts';

/** Never waits and never throws. `notifications`: those of the current configuration. */
export function announceRefusal(notifications: Notifications | undefined, record: DecisionRecord): void {
  if (notifications === undefined || record.operation.includes('.')) {
    return;
  }
  const { time, request_id, operation, filter, outcome, message, lease_id, lease_name } = record;
  const { project_id, project_name, project_domain, user_id, user_name, user_domain } = record;
  notifications.refused({
    time,
    project: { id: project_id, name: project_name, domain: project_domain },
    user: { id: user_id, name: user_name, domain: user_domain },
    filter,
    requestId: request_id,
    operation,
    outcome,
    message,
    leaseId: lease_id,
    leaseName: lease_name,
  });
}
