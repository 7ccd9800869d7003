import { classifyReply } from '../../src/engine/smtp/classify-reply.ts'
import type { Variant } from '../variants.ts'
import { classifyByList } from './plain-list.ts'
import type { LabeledReply } from './replies.ts'

export const classifyWithEv = ({ stage, reply, recipient }: LabeledReply): string =>
  classifyReply(stage, reply, { recipient }).kind
const classifyPlainly = ({ reply }: LabeledReply): string =>
  classifyByList(reply.code, reply.enhanced, reply.text)

export const CLASSIFIERS: readonly (readonly [
  name: string,
  classify: (labeled: LabeledReply) => string,
])[] = [
  ['ev', classifyWithEv],
  ['a plain list of 41 expressions', classifyPlainly],
]

/** Returns the classifiers as variants of the work on a list; the plain list is the last. */
export function createClassifierVariants(list: readonly LabeledReply[]): Variant[] {
  return CLASSIFIERS.map(([name, classify]) => createVariant(name, list, classify))
}

function createVariant(
  name: string,
  list: readonly LabeledReply[],
  classify: (labeled: LabeledReply) => string,
): Variant {
  let rejected = 0
  return {
    name,
    work() {
      for (const labeled of list) if (classify(labeled) === 'rejected') rejected += 1
      // Uses the result, so that the compiler cannot eliminate the work.
      if (rejected === 0) throw new Error(`${name} classified no reply as rejected`)
      return list.length
    },
  }
}
