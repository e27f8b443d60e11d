import { describe, expect, it } from 'vitest';
import { OverloadedError } from '../../../src/base/concurrency-limiter.ts';
import { LimitedLogger } from '../../../src/base/limited-logger.ts';
import { type PodRequest, parseAdmissionReview } from '../../../src/kubernetes/admission/admission-review.ts';
import { PodAdmission } from '../../../src/kubernetes/admission/pod-admission.ts';
import { SourceUnavailableError } from '../../../src/kubernetes/policies/access.ts';
import { FailedReviews } from '../../../src/server/protocols/failed-reviews.ts';
import { creating } from '../../support/kubernetes-service.ts';
import { recordingLogger } from '../../support/logger.ts';

const POD = parseAdmissionReview(creating()) as PodRequest;
const SECRET = new Error('the password is hunter2');

function failing(audit: readonly string[] = []) {
  const logger = recordingLogger();
  const overloads: number[] = [];
  const limited = new LimitedLogger(logger);
  const failures = new FailedReviews(limited, () => void overloads.push(1));
  const source = { policiesOf: () => Promise.reject(SECRET) };
  const admission = (thrown: unknown) =>
    failures.admission(thrown, POD, 'req-1', new PodAdmission(source, { audit }));
  return { logger, limited, overloads, admission };
}

describe('a pod that cannot be judged', () => {
  it.each([
    [new SourceUnavailableError('away', { cause: SECRET }), 503, 'the scheduling policies of system:'],
    [new OverloadedError('full'), 503, 'too much is being reviewed; try again'],
    [SECRET, 500, 'this is a fault of the policy service; its log has the cause under req-1'],
    ['text', 500, 'this is a fault'],
  ])('is refused for %s, without its cause', (thrown, failed, message) => {
    const { admission } = failing(['a']);
    const answer = admission(thrown);
    expect(answer).toMatchObject({ allowed: false, failed, message: expect.stringContaining(message) });
    expect(JSON.stringify(answer)).not.toContain('hunter2');
  });

  it('is let through with a warning if all policies are only tried', () => {
    const answer = failing(['*']).admission(SECRET);
    expect(answer).toMatchObject({
      allowed: true,
      message: null,
      isAudited: true,
      failed: 500,
      warnings: [expect.stringMatching(/^scheduling policies in audit mode could not be tried: /)],
    });
    expect(JSON.stringify(answer)).not.toContain('hunter2');
  });

  it('has its cause in the log, in at most 30 lines a minute', () => {
    const { admission, limited, logger, overloads } = failing();
    for (let count = 0; count < 1000; count += 1) {
      admission(new SourceUnavailableError('away', { cause: SECRET }));
      admission(new OverloadedError('full'));
    }
    admission(SECRET);
    limited.close();
    expect(overloads).toHaveLength(1000);
    expect(logger.lines).toHaveLength(32);
    expect(logger.lines[0]).toMatchObject({
      level: 'warn',
      fields: { request_id: 'req-1', error: 'away (the password is hunter2)' },
    });
    expect(logger.lines[30]).toMatchObject({ level: 'error', message: 'review failed' });
    expect(logger.lines[31]).toMatchObject({ fields: { suppressed: 970 } });
  });
});
