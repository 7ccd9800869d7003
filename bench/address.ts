// Compares the speed of address parsing with validator's isEmail: node bench/address.ts
import { createRequire } from 'node:module'
import { isFault, parseAddress } from '../src/engine/address/address.ts'
import { createClassifier } from '../src/engine/address/classifier.ts'
import { type LabeledAddress, typicalList, unusual } from './address/list.ts'
import { machine } from './engine/figures.ts'
import { measureVariants, rows, type Variant } from './variants.ts'

type Validator = { isEmail(text: string, options: Record<string, boolean>): boolean }
const { isEmail } = createRequire(import.meta.url)('validator') as Validator

/** Options that make isEmail accept more of RFC 5321 and RFC 6531. */
const OPTIONS = { allow_utf8_local_part: true, allow_ip_domain: true }
const LENGTH = 20_000

const flags = createClassifier()
/** Parses and classifies an address, as a verification does before any network access. */
function parseAndClassify(text: string): boolean {
  const address = parseAddress(text)
  if (isFault(address)) return false
  return flags.of(address).canonical !== ''
}

const VARIANTS: readonly (readonly [name: string, isGood: (text: string) => boolean])[] = [
  ['ev, parsed and classified', parseAndClassify],
  ['ev, parsed', text => !isFault(parseAddress(text))],
  ['validator’s isEmail', isEmailText],
]

/** isEmail throws on a lone surrogate. */
function isEmailText(text: string): boolean {
  try {
    return isEmail(text, OPTIONS)
  } catch {
    return false
  }
}

console.log(`Machine: ${machine()}; medians, processor time.`)
compare(`A list of ${LENGTH.toLocaleString('en')} typical addresses`, typicalList(LENGTH))
compare(`The ${unusual.length} unusual addresses of the fixtures`, unusual)

function compare(title: string, list: readonly LabeledAddress[]): void {
  console.log(`\n### ${title}\n`)
  console.log('| variant | addresses/s | relative to isEmail |')
  console.log('|---|---|---|')
  for (const row of rows(
    measureVariants(VARIANTS.map(([name, isGood]) => createVariant(name, list, isGood))),
  )) {
    console.log(row)
  }
  const accuracies = VARIANTS.slice(1).map(([name, isGood]) => {
    const correct = list.filter(({ text, good }) => isGood(text) === good).length
    return `${name} ${((correct / list.length) * 100).toFixed(1)}%`
  })
  console.log(`\nCorrect: ${accuracies.join(', ')}.`)
}

function createVariant(
  name: string,
  list: readonly LabeledAddress[],
  isGood: (text: string) => boolean,
): Variant {
  let good = 0
  return {
    name,
    work() {
      for (const { text } of list) if (isGood(text)) good += 1
      // Uses the result, so that the compiler cannot eliminate the work.
      if (good === 0) throw new Error(`${name} accepted no address`)
      return list.length
    },
  }
}
