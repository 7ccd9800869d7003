import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Stage } from '../../src/engine/smtp/classify-reply.ts'
import type { Reply } from '../../src/engine/smtp/reply.ts'

/** A reply as a server gives it to somebody, and what it means. */
export type Judged = {
  readonly stage: Stage
  readonly reply: Reply
  readonly recipient: string
  readonly kind: string
}

const FOLDER = join(import.meta.dirname, '../../fixtures/reply')

/** All replies of the fixtures. */
export const replies: readonly Judged[] = readdirSync(FOLDER).flatMap(file =>
  readFileSync(join(FOLDER, file), 'utf8').trimEnd().split('\n').slice(1).map(judged),
)

function judged(line: string): Judged {
  const [stage, code = '', enhanced, text = '', kind = ''] = line.split('\t')
  return {
    stage: stage as Stage,
    reply: {
      code: Number.parseInt(code, 10),
      enhanced: enhanced || null,
      text: text.replaceAll('\\n', '\n'),
    },
    recipient: 'ann@mx.example',
    kind,
  }
}

/** The same, each to another recipient, whose address stands where the text has one: what a list hears. */
export const toManyPeople = (length: number): Judged[] =>
  Array.from({ length }, (_, at) => {
    const given = replies[at % replies.length] as Judged
    const recipient = `user${at}@company-${at % 97}.example`
    const text = given.reply.text.replaceAll(ADDRESS, `<${recipient}>`)
    return { ...given, recipient, reply: { ...given.reply, text } }
  })

/** And with a number behind it that no other has, as Google's and Microsoft's replies do: nothing can be remembered. */
export const neverTheSame = (length: number): Judged[] =>
  toManyPeople(length).map((given, at) => {
    const text = `${given.reply.text} [${(at + 1_000_000).toString(36)}.eu${at % 7}]`
    return { ...given, reply: { ...given.reply, text } }
  })

const ADDRESS = /<[^<>\s]+@[^<>\s]+>/g
