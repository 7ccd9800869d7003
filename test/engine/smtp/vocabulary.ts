import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Stage } from '../../../src/engine/smtp/classify-reply.ts'
import type { Reply } from '../../../src/engine/smtp/reply.ts'

/** A reply text from public documentation or the source of a mail server, and what it means. */
export type VocabularyCase = {
  readonly stage: Stage
  readonly reply: Reply
  /** `kind/why` of the answer. */
  readonly means: string
  /** Other acceptable meanings. */
  readonly also: readonly string[]
  readonly source: string
  /** True for a third of the cases. The rules were written without them. */
  readonly isHeldOut: boolean
}

const FIXTURES = join(import.meta.dirname, '../../../fixtures/reply-vocabulary')

export const vocabulary: readonly VocabularyCase[] = readdirSync(FIXTURES).flatMap(file =>
  readFileSync(join(FIXTURES, file), 'utf8').trimEnd().split('\n').slice(1).map(toCase),
)

function toCase(line: string): VocabularyCase {
  const [stage, code, enhanced, text = '', means = '', also = '', source = ''] = line.split('\t')
  return {
    stage: stage as Stage,
    reply: { code: Number(code), enhanced: enhanced || null, text: text.replaceAll('\\n', '\n') },
    means,
    also: also.split(' ').filter(Boolean),
    source,
    isHeldOut: (createHash('sha256').update(text).digest()[0] ?? 0) % 3 === 0,
  }
}
