import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Stage } from '../../../src/engine/smtp/classify-reply.ts'
import type { Reply } from '../../../src/engine/smtp/reply.ts'

/** A row of `fixtures/reply`, whose README describes the columns. */
export type ReplyRow = {
  readonly file: string
  readonly line: string
  readonly stage: Stage
  readonly reply: Reply
  readonly kind: string
  readonly why: string
}

export const REPLY_FIXTURES = join(import.meta.dirname, '../../../fixtures/reply')

export const replyRows: readonly ReplyRow[] = readdirSync(REPLY_FIXTURES)
  .filter(file => file.endsWith('.tsv'))
  .flatMap(file =>
    readFileSync(join(REPLY_FIXTURES, file), 'utf8')
      .replace(/\n$/, '')
      .split('\n')
      .slice(1)
      .map(line => toRow(file, line)),
  )

function toRow(file: string, line: string): ReplyRow {
  const [stage, code, enhanced, text = '', kind = '', why = ''] = line.split('\t')
  const reply = {
    code: Number(code),
    enhanced: enhanced || null,
    text: text.replaceAll('\\n', '\n'),
  }
  return { file, line, stage: stage as Stage, reply, kind, why }
}
