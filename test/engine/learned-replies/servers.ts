import type { LearnedReply, LearnedReplyStore } from '../../../src/index.ts'
import { toRecipients } from '../../support/recipients.ts'

/** A script that accepts these local parts, and says the text to all others. */
export const accepting = (known: readonly string[], text: string) =>
  toRecipients(to =>
    known.includes(to.split('@')[0] as string) ? '250 2.1.5 Ok' : text.replaceAll('{to}', to),
  )

/** A store in memory. */
export function learnedStore(): LearnedReplyStore & { readonly all: LearnedReply[] } {
  const all: LearnedReply[] = []
  return {
    all,
    load: async () => [...all],
    put(reply) {
      const same = all.findIndex(one => one.domain === reply.domain && one.reply === reply.reply)
      if (same >= 0) all.splice(same, 1)
      all.push(reply)
    },
  }
}
