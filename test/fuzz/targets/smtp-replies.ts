import { deepEqual, match, ok } from 'node:assert/strict'
import { REPLY_BYTES_MAX, type Reply, ReplyReader } from '../../../src/engine/smtp/reply.ts'
import { type FuzzTarget, readCells, splitBytes } from '../target.ts'

/** Replies are the same in any chunking, and within their limits. */
export const target: FuzzTarget = {
  fuzz(bytes) {
    const whole = read([bytes])
    deepEqual(read(splitBytes(bytes)), whole)
    for (const { code, enhanced, text } of whole.replies) {
      ok(code >= 200 && code <= 599)
      ok(text.length <= REPLY_BYTES_MAX)
      if (enhanced !== null) match(enhanced, /^[245]\.\d{1,3}\.\d{1,3}$/)
    }
  },
  *seeds() {
    for (const [, code = '', enhanced = '', text = ''] of readCells('reply/providers.tsv')) {
      yield `${code}-${text.slice(0, 20)}\r\n${code} ${enhanced} ${text}\r\n`
    }
    yield `220 ${'a'.repeat(2_044)}\r\n`
    yield '220 mx.example.com ESMTP\r\n250-mx\r\n250-SIZE 1000\r\n250 SMTPUTF8\r\n'
  },
  lengthMax: 8_192,
}

function read(chunks: readonly Uint8Array[]) {
  const reader = new ReplyReader()
  const replies: Reply[] = chunks.flatMap(chunk => reader.push(chunk))
  return { replies, fault: reader.fault, isMidway: reader.fault === null && reader.midway }
}
