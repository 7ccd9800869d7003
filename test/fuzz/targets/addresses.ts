import { deepEqual, equal, match, ok } from 'node:assert/strict'
import { splitAddresses } from '../../../src/csv/column.ts'
import {
  addressKey,
  cleanAddress,
  isFault,
  parseAddress,
  wireAddress,
} from '../../../src/engine/address/address.ts'
import { canonicalAddress } from '../../../src/engine/address/canonical.ts'
import { type FuzzTarget, readCells } from '../target.ts'

/** An address that is sent is read as the same address, and never ends an SMTP command. */
export const target: FuzzTarget = {
  fuzz(bytes) {
    const text = bytes.toString()
    const parsed = parseAddress(text)
    if (isFault(parsed)) {
      ok(parsed.at >= 0 && parsed.at <= Math.max(0, text.length))
      match(parsed.message, /\.$/)
    } else {
      const wire = wireAddress(parsed)
      match(wire, /^[^\p{Cc}]{3,254}$/u)
      const again = parseAddress(wire)
      if (isFault(again)) throw new Error(`${JSON.stringify(wire)} is refused: ${again.message}`)
      equal(wireAddress(again), wire)
      equal(addressKey(again), addressKey(parsed))
      equal(typeof canonicalAddress(parsed), 'string')
    }
    const clean = cleanAddress(text)
    if (clean.address !== null) {
      deepEqual(parseAddress(clean.text), clean.address)
      equal(cleanAddress(clean.text).text, clean.text)
    }
    for (const one of splitAddresses(text)) ok(one.length <= text.length)
  },
  *seeds() {
    for (const file of ['good', 'pasted', 'bad']) {
      for (const [text = ''] of readCells(`address/${file}.tsv`).slice(1)) {
        yield text.replace(/\\u([0-9a-f]{4})/g, (_, hex) => String.fromCharCode(Number(`0x${hex}`)))
      }
    }
  },
  lengthMax: 512,
}
