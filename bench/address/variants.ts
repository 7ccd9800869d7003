import { createRequire } from 'node:module'
import { isFault, parseAddress } from '../../src/engine/address/address.ts'
import { createClassifier } from '../../src/engine/address/classifier.ts'
import type { Variant } from '../variants.ts'
import type { LabeledAddress } from './list.ts'

type Validator = { isEmail(text: string, options: Record<string, boolean>): boolean }
const { isEmail } = createRequire(import.meta.url)('validator') as Validator

/** Options that make isEmail accept more of RFC 5321 and RFC 6531. */
const OPTIONS = { allow_utf8_local_part: true, allow_ip_domain: true }
const flags = createClassifier()
/** Parses and classifies an address, as a verification does before any network access. */
function parseAndClassify(text: string): boolean {
  const address = parseAddress(text)
  if (isFault(address)) return false
  return flags.of(address).canonical !== ''
}

export const PARSERS: readonly (readonly [name: string, isGood: (text: string) => boolean])[] = [
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

/** Returns the parsers as variants of the work on a list; `isEmail` is the last. */
export function createParserVariants(list: readonly LabeledAddress[]): Variant[] {
  return PARSERS.map(([name, isGood]) => createVariant(name, list, isGood))
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
