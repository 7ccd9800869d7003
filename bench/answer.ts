// Compares the speed of reply classification with a plain list of regular expressions:
// node bench/answer.ts
import { forManyRecipients, type LabeledReply, neverRepeated, replies } from './answer/replies.ts'
import { CLASSIFIERS, classifyWithEv, createClassifierVariants } from './answer/variants.ts'
import { machine } from './engine/figures.ts'
import { measureVariants, rows } from './variants.ts'

const LENGTH = 20_000

console.log(`Machine: ${machine()}; medians, processor time.`)
compare('Replies to many recipients', forManyRecipients(LENGTH))
compare('Replies that are all different', neverRepeated(LENGTH))

console.log(`\n### Classification of the ${replies.length} replies of the fixtures\n`)
console.log('| variant | correct | blocks and deferrals classified as rejections |')
console.log('|---|---|---|')
for (const [name, classify] of CLASSIFIERS) {
  const correct = replies.filter(labeled => classify(labeled) === labeled.kind).length
  const about = replies.filter(({ kind }) => kind === 'blocked' || kind === 'deferred')
  const lost = about.filter(labeled => classify(labeled) === 'rejected').length
  console.log(`| ${name} | ${share(correct, replies.length)} | ${share(lost, about.length)} |`)
}

function compare(title: string, list: readonly LabeledReply[]): void {
  console.log(`\n### ${title}\n`)
  console.log('| variant | replies/s | relative to the plain list |')
  console.log('|---|---|---|')
  for (const row of rows(measureVariants(createClassifierVariants(list)))) console.log(row)
  const correct = list.filter(labeled => classifyWithEv(labeled) === labeled.kind).length
  console.log(`\nCorrect: ev ${share(correct, list.length)}.`)
}

function share(part: number, whole: number): string {
  return `${((part / whole) * 100).toFixed(1)}%`
}
