import { describe, expect, it } from 'vitest';
import { Deadline, waitFor } from '../src/deadline.ts';
import { OverloadedError, WaitingLine } from '../src/waiting-line.ts';

const FOREVER = waitFor(undefined);

describe('WaitingLine', () => {
  it('lets in who has waited longest, one at a time', async () => {
    const line = new WaitingLine();
    const entered: string[] = [];
    const all = ['first', 'second', 'third'].map((name) =>
      line.join(FOREVER, 'too late').then(() => entered.push(name)),
    );
    expect(line.length).toBe(3);
    for (const [index] of all.entries()) {
      expect(line.letIn()).toBe(true);
      await all[index];
      expect(entered).toHaveLength(index + 1);
    }
    expect(entered).toEqual(['first', 'second', 'third']);
    expect(line.length).toBe(0);
    expect(line.letIn()).toBe(false);
  });

  it('lets nobody in who has given up, and the next one in their place', async () => {
    const line = new WaitingLine();
    const impatient = new AbortController();
    const first = line.join(waitFor(impatient.signal), 'too late');
    const second = line.join(FOREVER, 'too late');
    impatient.abort();
    await expect(first).rejects.toThrow(new OverloadedError('too late'));
    expect(line.length).toBe(1);
    expect(line.letIn()).toBe(true);
    await second;
    expect(line.letIn()).toBe(false);
  });

  it('turns away at once who has no time left', async () => {
    const line = new WaitingLine();
    await expect(line.join(waitFor(AbortSignal.abort()), 'too late')).rejects.toThrow(OverloadedError);
    const deadline = new Deadline(0.001);
    await new Promise((go) => deadline.signal.addEventListener('abort', go));
    await expect(line.join(deadline, 'too late')).rejects.toThrow('too late');
    expect(line.length).toBe(0);
  });

  it('turns away when the time is over that was not watched before', async () => {
    const line = new WaitingLine();
    await expect(line.join(new Deadline(0), 'too late')).rejects.toThrow('too late');
    expect(line.length).toBe(0);
  });

  it('does not turn away who is in already', async () => {
    const line = new WaitingLine();
    const wait = new AbortController();
    const joined = line.join(waitFor(wait.signal), 'too late');
    line.letIn();
    wait.abort();
    await joined;
  });
});
