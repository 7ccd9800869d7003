import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

/**
 * The most plausible encoding (a WHATWG label) of lines that are not UTF-8. Firefox's detector, chardetng, judges by
 * pairs of letters; the two encodings of old Macs, which it does not know, are taken where its choice gives no text.
 */
export function legacyEncoding(lines: readonly Uint8Array[]): string {
  const sample = Buffer.concat(lines.slice(0, SAMPLE_LINES)).subarray(0, SAMPLE_BYTES)
  if (SIGNS_OF_1252.test(new TextDecoder('windows-1252').decode(sample))) return 'windows-1252'
  const detected = detect(sample).toLowerCase()
  const guess = WIDER[detected] ?? detected
  const mismatchesOf = (encoding: string) => mismatches(new TextDecoder(encoding).decode(sample))
  const count = mismatchesOf(guess) + (guess === 'windows-1252' ? foreignTo1252(sample) : 0)
  return MAC.find(encoding => mismatchesOf(encoding) * 2 < count) ?? guess
}

/** A few hundred words settle it. */
const SAMPLE_LINES = 200
const SAMPLE_BYTES = 8 * 1024

/** ASCII beside quotation marks, dashes and signs that stand before no letter: nothing for a detector to judge by. */
const SIGNS_OF_1252 = /^(?:\p{ASCII}|[‘’‚“”„–—…•«»¿¡ ]|[£€©®°²³](?!\p{L}))*$/u

/** GBK is part of GB 18030. */
const WIDER: Readonly<Record<string, string>> = { gbk: 'gb18030' }
const MAC = ['macintosh', 'x-mac-cyrillic']
/**
 * What text seldom has, but text that was read wrongly often does: control characters, signs and large letters within
 * words, letters of two scripts side by side.
 */
const mismatches = (text: string): number => text.match(MISFIT)?.length ?? 0

const MISFIT = new RegExp(
  [
    '[\\u0080-\\u009F\\uFFFD]',
    // A sign grown into a word: what Macs write for é is Ž elsewhere, ß is §, Ö is …
    '(?<=\\p{L})[[\\p{S}§¶]--[+]]',
    '(?<=\\p{L})[¡¿‚„…†‡‰‹›•«»“”](?=\\p{L})',
    '(?<!\\p{L})[†‡‰…§¶](?=\\p{L})',
    '(?<=\\p{Ll})[–—](?=\\p{Ll})',
    '(?<=\\p{Ll})[\\p{Lu}--[A-Z]]',
    '(?<=\\p{Lu})[ŠŽŒŸ](?=\\p{Ll})',
    '(?<=\\p{Script=Latin})\\p{Script=Cyrillic}',
    '(?<=\\p{Script=Cyrillic})\\p{Script=Latin}',
  ].join('|'),
  'gv',
)

/** The languages of windows-1252 hardly use š and ž; on Macs their bytes are ö and û. */
const foreignTo1252 = (sample: Uint8Array): number =>
  new TextDecoder('windows-1252').decode(sample).match(/[šž]/g)?.length ?? 0

/** The functions of chardetng-wasm, which is loaded by hand: Node imports no wasm without a flag. */
type Chardetng = {
  readonly memory: { readonly buffer: ArrayBuffer }
  readonly __wbindgen_malloc: (length: number) => number
  readonly __wbindgen_add_to_stack_pointer: (by: number) => number
  readonly detect: (returned: number, bytes: number, length: number) => void
}

/** What TypeScript's types of Node leave out. */
type Wasm = {
  readonly Module: new (code: Uint8Array) => object
  readonly Instance: new (module: object, imports: object) => { readonly exports: object }
}

let chardetng: Chardetng | undefined

function load(): Chardetng {
  const file = import.meta.resolve('chardetng-wasm/dist/chardetng_wasm_bg.wasm')
  const { WebAssembly } = globalThis as unknown as { WebAssembly: Wasm }
  const compiled = new WebAssembly.Module(readFileSync(fileURLToPath(file)))
  const __wbindgen_throw = () => {
    throw new Error('chardetng failed')
  }
  const imports = { './chardetng_wasm_bg.js': { __wbindgen_throw } }
  return new WebAssembly.Instance(compiled, imports).exports as Chardetng
}

function detect(bytes: Uint8Array): string {
  chardetng ??= load()
  const { memory, ...wasm } = chardetng
  // Two words on its stack: where the name is, and how long.
  const returned = wasm.__wbindgen_add_to_stack_pointer(-16)
  const copy = wasm.__wbindgen_malloc(bytes.length)
  new Uint8Array(memory.buffer).set(bytes, copy)
  wasm.detect(returned, copy, bytes.length)
  const [at = 0, length = 0] = new Uint32Array(memory.buffer, returned, 2)
  const name = Buffer.from(memory.buffer, at, length).toString('latin1')
  wasm.__wbindgen_add_to_stack_pointer(16)
  return name
}
