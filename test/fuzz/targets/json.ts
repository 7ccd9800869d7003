import { deepEqual, fail, notEqual } from 'node:assert/strict'
import { isUtf8 } from 'node:buffer'
import { JsonError, parseJsonText } from '../../../src/platform/json-reader.ts'
import { type FuzzTarget, readFixture } from '../target.ts'

const LIMITS = { depthMax: 16, fieldsMax: 1_000, valuesMax: 10_000, tokenBytesMax: 1_000_000 }

/** A text means what it means to `JSON.parse`, except beyond a limit. */
export const target: FuzzTarget = {
  fuzz(bytes) {
    if (!isUtf8(bytes)) return
    const text = bytes.toString()
    const own = attempt(() => parseJsonText(text, LIMITS))
    if (own.error instanceof JsonError && own.error.limit !== null) return
    const standard = attempt(() => JSON.parse(text))
    deepEqual(own.value, standard.value)
    if (standard.error === null) return deepEqual(own.error, null)
    if (!(own.error instanceof JsonError)) fail(`not a JsonError: ${own.error}`)
    notEqual(own.error.message, '')
  },
  *seeds() {
    for (const name of ['verify', 'history', 'single', 'bulk-queued', 'event-webhook-test']) {
      yield readFixture(`api/${name}.json`).subarray(0, 2_000)
    }
    yield '{"a":[1,-0,1.5e-3,true,false,null],"__proto__":{"b":"\\u00e4\\n"},"a":"ä\\ud800"}'
    yield '['.repeat(16) + ']'.repeat(16)
  },
  lengthMax: 4_096,
}

function attempt(parse: () => unknown): { readonly value?: unknown; readonly error: unknown } {
  try {
    return { value: parse(), error: null }
  } catch (error) {
    return { error }
  }
}
