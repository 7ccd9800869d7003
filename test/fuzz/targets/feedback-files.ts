import { deepEqual, fail, ok } from 'node:assert/strict'
import { type FeedbackInput, parseFeedback } from '../../../src/feedback/feedback.ts'
import { parseReportMessage } from '../../../src/feedback/formats/report-message.ts'
import { readFeedback } from '../../../src/feedback/import-feedback.ts'
import { EvError } from '../../../src/platform/error.ts'
import { type FuzzTarget, readFixture, splitBytes, toStream } from '../target.ts'

const NOW = Date.UTC(2026, 0, 1)
const REPORTS = ['postfix-failed', 'rfc3464-failed', 'rfc5965-abuse', 'rfc6533-failed']

/** Reports and exports give the same feedback in any chunking; a message never throws. */
export const target: FuzzTarget = {
  async fuzz(bytes) {
    const whole = await read([bytes])
    deepEqual(await read(splitBytes(bytes)), whole)
    for (const item of [...(whole?.items ?? []), ...(await parseReportMessage(bytes, NOW))]) {
      checkItem(item)
    }
  },
  *seeds() {
    for (const name of REPORTS) yield readFixture(`feedback/${name}.eml`)
    yield `From a@mail.example Thu Jan  1 00:00:00 2026\n${readFixture('feedback/rfc5965-abuse.eml')}\n\nFrom b\nTo: x\n\n>From y\n`
    yield '{"email":"ann@mail.example","event":"bounce","reason":"550 5.1.1 no","timestamp":1767225600}\n{"email":1}\n'
    yield 'email,type,diagnostic\nann@mail.example,hard bounce,"smtp; 550 5.1.1 unknown"\n'
  },
  lengthMax: 6_144,
}

async function read(chunks: readonly Buffer[]) {
  const items: FeedbackInput[] = []
  let ignored = 0
  try {
    for await (const batch of readFeedback(toStream(chunks), { now: NOW, kind: 'bounced' })) {
      items.push(...batch.items)
      ignored += batch.ignored
    }
    return { items, ignored }
  } catch (error) {
    if (!(error instanceof EvError) || error.code !== 'bad_input') fail(`not bad_input: ${error}`)
    return null
  }
}

/** A sentence, or what the store takes. */
function checkItem(item: FeedbackInput): void {
  const feedback = parseFeedback(item, NOW)
  if (typeof feedback === 'string') return
  const { code, occurredAt } = feedback
  ok(code === null || (Number.isInteger(code) && code >= 200 && code <= 599))
  ok(Number.isInteger(occurredAt) && occurredAt <= NOW)
}
