// How quickly replies are understood, beside a plain list of regular expressions in the same run: node bench/answer.ts

import { classifyReply } from '../src/engine/smtp/classify-reply.ts'
import { plainMeaning } from './answer/plain-list.ts'
import { type Judged, neverTheSame, replies, toManyPeople } from './answer/replies.ts'
import { machine } from './engine/figures.ts'
import { inTurns, rows, type Way } from './turns.ts'

const LENGTH = 20_000

const ours = ({ stage, reply, recipient }: Judged): string =>
  classifyReply(stage, reply, { recipient }).kind
const plain = ({ reply }: Judged): string => plainMeaning(reply.code, reply.enhanced, reply.text)

const WAYS: readonly (readonly [name: string, kindOf: (given: Judged) => string])[] = [
  ['ev', ours],
  ['a plain list of 41 expressions', plain],
]

console.log(`Machine: ${machine()}; medians, processor time.`)
compare('Replies to many people', toManyPeople(LENGTH))
compare('Replies of which no two are the same', neverTheSame(LENGTH))

console.log(`\n### What the ${replies.length} replies of the fixtures mean\n`)
console.log('| way | right | of the replies about us, taken for a missing mailbox |')
console.log('|---|---|---|')
for (const [name, kindOf] of WAYS) {
  const right = replies.filter(given => kindOf(given) === given.kind).length
  const about = replies.filter(({ kind }) => kind === 'blocked' || kind === 'deferred')
  const lost = about.filter(given => kindOf(given) === 'rejected').length
  console.log(`| ${name} | ${share(right, replies.length)} | ${share(lost, about.length)} |`)
}

function compare(title: string, list: readonly Judged[]): void {
  console.log(`\n### ${title}\n`)
  console.log('| way | replies/s | to the plain list |')
  console.log('|---|---|---|')
  for (const row of rows(inTurns(WAYS.map(([name, kindOf]) => wayOf(name, list, kindOf))))) {
    console.log(row)
  }
  const right = list.filter(given => ours(given) === given.kind).length
  console.log(`\nRight: ev ${share(right, list.length)}.`)
}

function wayOf(name: string, list: readonly Judged[], kindOf: (given: Judged) => string): Way {
  let rejected = 0
  return {
    name,
    work() {
      for (const given of list) if (kindOf(given) === 'rejected') rejected += 1
      // Somebody must look at what was found, or it need not be found.
      if (rejected === 0) throw new Error(`${name} found nobody rejected`)
      return list.length
    },
  }
}

function share(part: number, whole: number): string {
  return `${((part / whole) * 100).toFixed(1)} %`
}
