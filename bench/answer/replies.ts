import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Stage } from '../../src/engine/smtp/classify-reply.ts'
import type { Reply } from '../../src/engine/smtp/reply.ts'

/** A reply with its correct class. */
export type LabeledReply = {
  readonly stage: Stage
  readonly reply: Reply
  readonly recipient: string
  readonly kind: string
}

const FOLDER = join(import.meta.dirname, '../../fixtures/reply')

/** All replies of the fixtures. */
export const replies: readonly LabeledReply[] = readdirSync(FOLDER)
  .filter(file => file.endsWith('.tsv'))
  .flatMap(file =>
    readFileSync(join(FOLDER, file), 'utf8').trimEnd().split('\n').slice(1).map(parseLine),
  )

function parseLine(line: string): LabeledReply {
  const [stage, code = '', enhanced, text = '', kind = ''] = line.split('\t')
  return {
    stage: stage as Stage,
    reply: {
      code: Number(code),
      enhanced: enhanced || null,
      text: text.replaceAll('\\n', '\n'),
    },
    recipient: 'ann@mx.example',
    kind,
  }
}

/** A list meets far fewer texts than the fixtures have. */
const TEXTS_OF_LIST = 200

/** Replies of the fixtures with a different recipient each, also in the text, as in a list. */
export const forManyRecipients = (length: number): LabeledReply[] =>
  Array.from({ length }, (_, n) => {
    const nth = n % TEXTS_OF_LIST
    const labeled = replies[Math.floor((nth * replies.length) / TEXTS_OF_LIST)] as LabeledReply
    const recipient = `user${n}@company-${n % 97}.example`
    const text = labeled.reply.text.replaceAll(ADDRESS, `<${recipient}>`)
    return { ...labeled, recipient, reply: { ...labeled.reply, text } }
  })

/**
 * The same with a different number after each, as in replies of Google and Microsoft, so that no
 * text can be cached.
 */
export const neverRepeated = (length: number): LabeledReply[] =>
  forManyRecipients(length).map((labeled, n) => {
    const text = `${labeled.reply.text} [${(n + 1_000_000).toString(36)}.eu${n % 7}]`
    return { ...labeled, reply: { ...labeled.reply, text } }
  })

const ADDRESS = /<[^<>\s]+@[^<>\s]+>/g
