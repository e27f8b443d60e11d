import { describe, expect, it } from 'vitest';
import { Admission } from '../src/admission.ts';
import { Deadline, waitFor } from '../src/deadline.ts';
import { OverloadedError } from '../src/waiting-line.ts';

const FOREVER = waitFor(undefined);

describe('Admission', () => {
  it('lets in at once as many as may be under way', () => {
    const admission = new Admission(2, 0);
    expect(admission.enter(FOREVER)).toBeUndefined();
    expect(admission.enter(FOREVER)).toBeUndefined();
    expect(admission).toMatchObject({ underWay: 2, queued: 0 });
  });

  it('has as many wait as may, in their order, and refuses the next at once', async () => {
    const admission = new Admission(1, 2);
    admission.enter(FOREVER);
    const entered: number[] = [];
    const waiting = [1, 2].map((number) => admission.enter(FOREVER)?.then(() => entered.push(number)));
    expect(admission).toMatchObject({ underWay: 1, queued: 2 });
    expect(() => admission.enter(FOREVER)).toThrow(OverloadedError);

    admission.leave();
    await waiting[0];
    expect(entered).toEqual([1]);
    expect(admission).toMatchObject({ underWay: 1, queued: 1 });
    admission.leave();
    await waiting[1];
    expect(entered).toEqual([1, 2]);
    admission.leave();
    expect(admission).toMatchObject({ underWay: 0, queued: 0 });
  });

  it('refuses at once where nobody may wait', () => {
    const admission = new Admission(1, 0);
    admission.enter(FOREVER);
    expect(() => admission.enter(FOREVER)).toThrow('Too many decisions are under way and waiting.');
    admission.leave();
    expect(admission.enter(FOREVER)).toBeUndefined();
  });

  it('keeps no place for who could not be let in in time', async () => {
    const admission = new Admission(1, 1);
    admission.enter(FOREVER);
    await expect(admission.enter(new Deadline(0))).rejects.toThrow('No decision could be made in time.');
    expect(admission).toMatchObject({ underWay: 1, queued: 0 });
    const next = admission.enter(FOREVER);
    admission.leave();
    await next;
    expect(admission.underWay).toBe(1);
  });

  it('has never more under way than may be, whoever comes, leaves and gives up', async () => {
    const admission = new Admission(3, 5);
    let most = 0;
    const visit = async (index: number) => {
      try {
        await admission.enter(index % 4 === 0 ? new Deadline(0.002) : FOREVER);
      } catch (thrown) {
        expect(thrown).toBeInstanceOf(OverloadedError);
        return;
      }
      most = Math.max(most, admission.underWay);
      await new Promise((go) => setTimeout(go, index % 3));
      admission.leave();
    };
    await Promise.all(
      Array.from({ length: 200 }, async (_, index) => {
        await new Promise((go) => setTimeout(go, index % 10));
        await visit(index);
      }),
    );
    expect(most).toBe(3);
    expect(admission).toMatchObject({ underWay: 0, queued: 0 });
  });
});
