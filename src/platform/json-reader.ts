import { yieldToEventLoop } from './clock.ts'

/** Limits of a JSON text, which hold while it is read. */
export type JsonLimits = {
  /** Levels of objects and arrays. */
  readonly depthMax: number
  /** Fields of one object. */
  readonly fieldsMax: number
  /** Objects, arrays and other values of the text. */
  readonly valuesMax: number
  /** Bytes of a string, a number or a field name as written, without quotes. */
  readonly tokenBytesMax: number
}

type JsonOptions = {
  /** Whether an object may have a field twice, of which the last one counts. Default: true. */
  readonly mayRepeatFields?: boolean
}

export type JsonLimit = keyof JsonLimits

/** A JSON text is malformed, or exceeds a limit. */
export class JsonError extends Error {
  override readonly name = 'JsonError'
  /** Index of the byte where it was noticed. */
  readonly at: number
  /** The exceeded limit; null for a syntax error. */
  readonly limit: JsonLimit | null

  constructor(message: string, at: number, limit: JsonLimit | null = null) {
    super(message)
    this.at = at
    this.limit = limit
  }
}

/**
 * Reads a JSON text (RFC 8259) in UTF-8 as `JSON.parse` does. Returns the value of a short text, and
 * for a long one a promise: it is read with pauses for the event loop, because `JSON.parse` needs
 * half a second for 16 MiB of escapes or field names. Throws JsonError, or rejects with it. The text
 * must be valid UTF-8.
 */
export function readJsonText(
  bytes: Uint8Array,
  limits: JsonLimits,
  options: JsonOptions = {},
): unknown {
  const reading = new JsonReader(bytes, limits, options).read()
  const step = reading.next()
  return step.done === true ? step.value : readRest(reading)
}

async function readRest(reading: Generator<void, unknown>): Promise<unknown> {
  for (;;) {
    await yieldToEventLoop()
    const step = reading.next()
    if (step.done === true) return step.value
  }
}

/** Reads a short JSON text within limits. Throws JsonError. */
export function parseJsonText(
  text: string,
  limits: JsonLimits,
  options: JsonOptions = {},
): unknown {
  const reading = new JsonReader(Buffer.from(text), limits, options).read()
  for (;;) {
    const step = reading.next()
    if (step.done === true) return step.value
  }
}

/** Work between two pauses, in bytes and in values: some milliseconds. */
const STEP_BYTES = 64 * 1024
const STEP_VALUES = 10_000

type Fields = Record<string, unknown>

/** An object or an array that is not complete. */
type Container = {
  readonly value: unknown[] | Fields
  /** Name of the field that is being read; null in an array. */
  name: string | null
  fields: number
}

class JsonReader {
  readonly #bytes: Buffer
  readonly #limits: JsonLimits
  readonly #mayRepeatFields: boolean
  readonly #stack: Container[] = []
  #at = 0
  #values = 0

  constructor(bytes: Uint8Array, limits: JsonLimits, { mayRepeatFields = true }: JsonOptions) {
    this.#bytes = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    this.#limits = limits
    this.#mayRepeatFields = mayRepeatFields
  }

  /** Returns the value; yields where the reader may pause. */
  *read(): Generator<void, unknown> {
    let [pausedAt, pausedValues] = [0, 0]
    for (;;) {
      let value = this.#startValue()
      // A container that was opened continues with its first value.
      while (value !== OPENED) {
        const top = this.#stack.at(-1)
        if (top === undefined) return this.#end(value)
        add(top, value)
        if (!this.#isClosed(top)) break
        this.#stack.pop()
        value = top.value
      }
      if (this.#at - pausedAt < STEP_BYTES && this.#values - pausedValues < STEP_VALUES) continue
      pausedAt = this.#at
      pausedValues = this.#values
      yield
    }
  }

  #end(value: unknown): unknown {
    this.#skipBlanks()
    if (this.#at < this.#bytes.length) throw this.#unexpected()
    return value
  }

  /** Reads a value, or only the start of an object or array that is not empty. */
  #startValue(): unknown {
    this.#skipBlanks()
    this.#values += 1
    if (this.#values > this.#limits.valuesMax) throw this.#exceeded('valuesMax')
    switch (this.#bytes[this.#at]) {
      case QUOTE:
        return this.#string()
      case OPEN_OBJECT:
        return this.#open({ value: {}, name: null, fields: 0 }, CLOSE_OBJECT)
      case OPEN_ARRAY:
        return this.#open({ value: [], name: null, fields: 0 }, CLOSE_ARRAY)
      default:
        return this.#literal()
    }
  }

  #open(container: Container, close: number): unknown {
    if (this.#stack.length === this.#limits.depthMax) throw this.#exceeded('depthMax')
    this.#at += 1
    this.#skipBlanks()
    if (this.#bytes[this.#at] === close) {
      this.#at += 1
      return container.value
    }
    this.#stack.push(container)
    if (close === CLOSE_OBJECT) this.#name(container)
    return OPENED
  }

  /** Reads what follows a value. Returns true at the end of its container. */
  #isClosed(top: Container): boolean {
    this.#skipBlanks()
    const isObject = top.name !== null
    const code = this.#bytes[this.#at]
    if (code !== COMMA && code !== (isObject ? CLOSE_OBJECT : CLOSE_ARRAY)) throw this.#unexpected()
    this.#at += 1
    if (code !== COMMA) return true
    if (isObject) this.#name(top)
    return false
  }

  /** Reads the name of a field and its colon. */
  #name(object: Container): void {
    this.#skipBlanks()
    if (this.#bytes[this.#at] !== QUOTE) throw this.#unexpected()
    object.fields += 1
    if (object.fields > this.#limits.fieldsMax) throw this.#exceeded('fieldsMax')
    const start = this.#at
    const name = this.#string()
    if (!this.#mayRepeatFields && Object.hasOwn(object.value, name))
      throw new JsonError(`the field ${JSON.stringify(name)} is repeated`, start)
    object.name = name
    this.#skipBlanks()
    if (this.#bytes[this.#at] !== COLON) throw this.#unexpected()
    this.#at += 1
  }

  #string(): string {
    const open = this.#at
    let hasEscapes = false
    for (;;) {
      this.#at += 1
      const code = this.#bytes[this.#at]
      if (code === QUOTE) break
      if (code === BACKSLASH) {
        hasEscapes = true
        this.#at += 1
      }
      if (code === undefined || code < SPACE) throw this.#unexpected()
      if (this.#at - open > this.#limits.tokenBytesMax) throw this.#exceeded('tokenBytesMax')
    }
    this.#at += 1
    if (!hasEscapes) return this.#bytes.toString('utf8', open + 1, this.#at - 1)
    try {
      return JSON.parse(this.#bytes.toString('utf8', open, this.#at))
    } catch {
      throw new JsonError('invalid escape in a string', open)
    }
  }

  /** Reads a number, true, false or null. */
  #literal(): unknown {
    const start = this.#at
    while (isLiteralByte(this.#bytes[this.#at])) {
      this.#at += 1
      if (this.#at - start > this.#limits.tokenBytesMax) throw this.#exceeded('tokenBytesMax')
    }
    const text = this.#bytes.toString('latin1', start, this.#at)
    if (text in LITERALS) return LITERALS[text as keyof typeof LITERALS]
    if (!NUMBER.test(text)) {
      this.#at = start
      throw this.#unexpected()
    }
    return Number(text)
  }

  #skipBlanks(): void {
    for (;;) {
      const code = this.#bytes[this.#at]
      if (code !== SPACE && code !== LF && code !== CR && code !== TAB) return
      this.#at += 1
    }
  }

  #unexpected(): JsonError {
    const { length } = this.#bytes
    if (this.#at >= length) return new JsonError('unexpected end', length)
    const [character = ''] = this.#bytes.subarray(this.#at, this.#at + 4).toString()
    return new JsonError(`unexpected ${JSON.stringify(character)}`, this.#at)
  }

  #exceeded(limit: JsonLimit): JsonError {
    return new JsonError(`more than ${this.#limits[limit]}`, this.#at, limit)
  }
}

function add({ value, name }: Container, one: unknown): void {
  if (Array.isArray(value)) value.push(one)
  else if (name !== '__proto__') value[name ?? ''] = one
  // An assignment would change the prototype.
  else Object.defineProperty(value, name, { ...OWN, value: one })
}

const OWN = { configurable: true, enumerable: true, writable: true } as const

/** Stands for a container whose end was not read. */
const OPENED = Symbol('opened')

const LITERALS = { __proto__: null, true: true, false: false, null: null }
const NUMBER = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/

/** Letters, digits, `+`, `-` and `.`. */
const isLiteralByte = (code = 0) =>
  (code >= 0x30 && code <= 0x39) ||
  (code >= 0x61 && code <= 0x7a) ||
  (code >= 0x41 && code <= 0x5a) ||
  code === 0x2b ||
  code === 0x2d ||
  code === 0x2e

const QUOTE = 0x22
const BACKSLASH = 0x5c
const OPEN_OBJECT = 0x7b
const CLOSE_OBJECT = 0x7d
const OPEN_ARRAY = 0x5b
const CLOSE_ARRAY = 0x5d
const COLON = 0x3a
const COMMA = 0x2c
const SPACE = 0x20
const LF = 0x0a
const CR = 0x0d
const TAB = 0x09
