// How quickly addresses are read, beside validator's isEmail in the same run: node bench/address.ts
import { createRequire } from 'node:module'
import { isFault, parseAddress } from '../src/engine/address/address.ts'
import { createClassifier } from '../src/engine/address/classifier.ts'
import { type Judged, odd, usualList } from './address/list.ts'
import { machine } from './engine/figures.ts'
import { inTurns, rows, type Way } from './turns.ts'

type Validator = { isEmail(text: string, options: Record<string, boolean>): boolean }
const { isEmail } = createRequire(import.meta.url)('validator') as Validator

/** All that it can take of RFC 5321 and RFC 6531, so that it is judged by what it knows. */
const OPTIONS = { allow_utf8_local_part: true, allow_ip_domain: true }
const LENGTH = 20_000

const flags = createClassifier()
/** Read, then told whether it is free, disposable, a role and so on: what a verification does before it asks anybody. */
function readAll(text: string): boolean {
  const address = parseAddress(text)
  if (isFault(address)) return false
  return flags.of(address).canonical !== ''
}

const WAYS: readonly (readonly [name: string, isGood: (text: string) => boolean])[] = [
  ['ev, parsed and its flags', readAll],
  ['ev, parsed', text => !isFault(parseAddress(text))],
  ['validator’s isEmail', isEmailText],
]

/** It throws at half a surrogate pair. */
function isEmailText(text: string): boolean {
  try {
    return isEmail(text, OPTIONS)
  } catch {
    return false
  }
}

console.log(`Machine: ${machine()}; medians, processor time.`)
compare(`A list of ${LENGTH.toLocaleString('en')} as people have it`, usualList(LENGTH))
compare(`The ${odd.length} odd ones of the fixtures`, odd)

function compare(title: string, list: readonly Judged[]): void {
  console.log(`\n### ${title}\n`)
  console.log('| way | addresses/s | to isEmail |')
  console.log('|---|---|---|')
  for (const row of rows(inTurns(WAYS.map(([name, isGood]) => wayOf(name, list, isGood))))) {
    console.log(row)
  }
  const shares = WAYS.slice(1).map(([name, isGood]) => {
    const right = list.filter(({ text, good }) => isGood(text) === good).length
    return `${name} ${((right / list.length) * 100).toFixed(1)} %`
  })
  console.log(`\nRight: ${shares.join(', ')}.`)
}

function wayOf(name: string, list: readonly Judged[], isGood: (text: string) => boolean): Way {
  let good = 0
  return {
    name,
    work() {
      for (const { text } of list) if (isGood(text)) good += 1
      // Somebody must look at what was found, or it need not be found.
      if (good === 0) throw new Error(`${name} took no address at all`)
      return list.length
    },
  }
}
