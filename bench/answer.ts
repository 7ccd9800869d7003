// Compares the speed of reply classification with a plain list of regular expressions:
// node bench/answer.ts

import { classifyReply } from '../src/engine/smtp/classify-reply.ts'
import { classifyByList } from './answer/plain-list.ts'
import { forManyRecipients, type LabeledReply, neverRepeated, replies } from './answer/replies.ts'
import { machine } from './engine/figures.ts'
import { measureVariants, rows, type Variant } from './variants.ts'

const LENGTH = 20_000

const classifyWithEv = ({ stage, reply, recipient }: LabeledReply): string =>
  classifyReply(stage, reply, { recipient }).kind
const classifyPlainly = ({ reply }: LabeledReply): string =>
  classifyByList(reply.code, reply.enhanced, reply.text)

const VARIANTS: readonly (readonly [name: string, classify: (labeled: LabeledReply) => string])[] =
  [
    ['ev', classifyWithEv],
    ['a plain list of 41 expressions', classifyPlainly],
  ]

console.log(`Machine: ${machine()}; medians, processor time.`)
compare('Replies to many recipients', forManyRecipients(LENGTH))
compare('Replies that are all different', neverRepeated(LENGTH))

console.log(`\n### Classification of the ${replies.length} replies of the fixtures\n`)
console.log('| variant | correct | blocks and deferrals classified as rejections |')
console.log('|---|---|---|')
for (const [name, classify] of VARIANTS) {
  const correct = replies.filter(labeled => classify(labeled) === labeled.kind).length
  const about = replies.filter(({ kind }) => kind === 'blocked' || kind === 'deferred')
  const lost = about.filter(labeled => classify(labeled) === 'rejected').length
  console.log(`| ${name} | ${share(correct, replies.length)} | ${share(lost, about.length)} |`)
}

function compare(title: string, list: readonly LabeledReply[]): void {
  console.log(`\n### ${title}\n`)
  console.log('| variant | replies/s | relative to the plain list |')
  console.log('|---|---|---|')
  for (const row of rows(
    measureVariants(VARIANTS.map(([name, classify]) => createVariant(name, list, classify))),
  )) {
    console.log(row)
  }
  const correct = list.filter(labeled => classifyWithEv(labeled) === labeled.kind).length
  console.log(`\nCorrect: ev ${share(correct, list.length)}.`)
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

function share(part: number, whole: number): string {
  return `${((part / whole) * 100).toFixed(1)}%`
}
