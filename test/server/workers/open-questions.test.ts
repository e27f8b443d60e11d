import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { OpenQuestions } from '../../../src/server/workers/open-questions.ts';

describe('a question over the channel', () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  /** Sends everything, and notes the ids. */
  function channel() {
    const questions = new OpenQuestions();
    const sent: number[] = [];
    const send = (id: number) => sent.push(id) > 0;
    return { questions, sent, send };
  }

  it('gets its own answer, whatever the order of the answers', async () => {
    const { questions, sent, send } = channel();
    const asked = [questions.ask(send), questions.ask(send, 1000)];
    for (const id of [...sent].reverse()) {
      questions.answered(id, `answer ${sent.indexOf(id)}`);
    }
    expect(await Promise.all(asked)).toEqual(['answer 0', 'answer 1']);
    expect(vi.getTimerCount()).toBe(0);
  });

  it('has no answer without a channel', async () => {
    const { questions } = channel();
    expect(await questions.ask(() => false, 1000)).toBeUndefined();
    expect(vi.getTimerCount()).toBe(0);
  });

  it('has none in time, and ignores the one that comes late', async () => {
    const { questions, sent, send } = channel();
    const asked = questions.ask(send, 1000);
    vi.advanceTimersByTime(1000);
    questions.answered(sent[0] ?? 0, 'late');
    expect(await asked).toBeUndefined();
  });

  it('has none when no answers come any more', async () => {
    const { questions, send } = channel();
    const asked = [questions.ask(send), questions.ask(send, 1000)];
    questions.end();
    expect(await Promise.all(asked)).toEqual([undefined, undefined]);
    expect(vi.getTimerCount()).toBe(0);
  });
});
