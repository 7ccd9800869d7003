import type { Letter, Post, Receipt } from '../../src/work/post/post.ts'

export type FakePost = Post & {
  /** All that was sent, in order. */
  readonly sent: Letter[]
  /** What happens from now on: a status, a receipt, or what becomes of each letter. */
  answer(how: How): void
}

type How = number | Partial<Receipt> | ((letter: Letter, nth: number) => Told | Promise<Told>)
type Told = number | Partial<Receipt>

/** A post that keeps what it got; every receiver answers 200 until told otherwise. */
export function fakePost(): FakePost {
  const sent: Letter[] = []
  let how: How = 200
  return {
    sent,
    answer(next) {
      how = next
    },
    async send(letter) {
      sent.push(letter)
      return receiptOf(typeof how === 'function' ? await how(letter, sent.length) : how)
    },
    close: async () => {},
  }
}

function receiptOf(told: Told): Receipt {
  const given = typeof told === 'number' ? answered(told) : told
  const faultCode = 'fault' in given ? 'request_failed' : null
  return { answer: null, fault: null, faultCode, durationMs: 84, ...given }
}

/** What a receiver answers, with these headers. */
export const answered = (
  status: number,
  headers: Readonly<Record<string, string>> = {},
  excerpt = 'ok',
) => ({ answer: { status, headers, excerpt } })
