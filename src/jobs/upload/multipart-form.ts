import { createHash } from 'node:crypto'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import type { ReadableStream } from 'node:stream/web'
import { Busboy, type BusboyFileStream } from '@fastify/busboy'
import { sanitizeText } from '../../platform/text.ts'
import { brokenOff, cutOff, type Incoming, limitedTo, storeBytes } from './store-upload.ts'
import { malformed, tooLarge, UploadFault } from './upload-error.ts'

/** A form with a file, as it was received. */
export type ReceivedForm = {
  readonly fields: ReadonlyMap<string, string>
  /** SHA-256 of file and fields, hexadecimal: by it the same form is known again. */
  readonly digest: string
  /** What the sender calls the file; empty where it was sent as text. */
  readonly fileName: string
  /** Bytes. */
  readonly size: number
}

export type FormRules = {
  /** Parts of these names are the file, even if they were sent as text; of several only one may have anything in it. */
  readonly fileFields: readonly [string, ...string[]]
  readonly fileBytesMax: number
  /** Called before anything of the file is taken, with the fields that stand before it. What it throws refuses the form. */
  readonly admit?: (fields: ReadonlyMap<string, string>) => void
}

/** What stands around the file: boundaries, headers of parts and the other fields. */
export const AROUND_BYTES_MAX = 64 * 1024
/** The fields that there are, with room for those that are none of ours. */
const FIELDS_MAX = 20
const FIELD_BYTES_MAX = 2_000
/** Of one part: a browser sends two. */
const PART_HEADERS_MAX = 20

/**
 * Takes a form (multipart/form-data) and stores its file under `path` while it comes. Throws UploadFault, or what `admit`
 * threw; then whoever asked removes what there is of the file.
 */
export async function receiveForm(
  request: Incoming,
  path: string,
  rules: FormRules,
): Promise<ReceivedForm> {
  const form = new Form(path, request, rules)
  try {
    return await form.receive()
  } catch (error) {
    await form.close()
    throw error
  }
}

type Stored = { readonly fileName: string; readonly size: number }

/** Reads a form to its end, as fields may come behind the file, which goes to the disk while it comes. */
class Form {
  readonly #path: string
  readonly #request: Incoming
  readonly #rules: FormRules
  readonly #parser: InstanceType<typeof Busboy>
  readonly #fields = new Map<string, string>()
  readonly #hash = createHash('sha256')
  #part: BusboyFileStream | null = null
  #stored: Promise<Stored> | null = null
  /** The first thing that is wrong with it. */
  #fault: UploadFault | null = null
  /** What `admit` threw. */
  #refusal: { readonly error: unknown } | null = null

  constructor(path: string, request: Incoming, rules: FormRules) {
    this.#path = path
    this.#request = request
    this.#rules = rules
    this.#parser = openParser(request.headers.get('Content-Type') ?? '', rules)
    this.#parser.on('field', (name, value, _, isCut) => this.#field(name, value, isCut))
    this.#parser.on('file', (name, part, fileName) => this.#file(name, part, fileName ?? ''))
    this.#parser.on('filesLimit', () => this.#blame('it holds more than one file'))
    this.#parser.on('fieldsLimit', () => this.#blame(`it has more than ${FIELDS_MAX} fields`))
  }

  async receive(): Promise<ReceivedForm> {
    await this.#read()
    const stored = await this.#stored
    if (this.#fault !== null) throw this.#fault
    const [field] = this.#rules.fileFields
    if (stored === null) throw malformed(`it has no file in a field named "${field}"`)
    for (const pair of [...this.#fields].toSorted()) this.#hash.update(JSON.stringify(pair))
    return { fields: this.#fields, digest: this.#hash.digest('hex'), ...stored }
  }

  /** Lets go of the file, however far it came. */
  async close(): Promise<void> {
    this.#part?.destroy(new Error('the form was given up'))
    await this.#stored?.catch(() => {})
  }

  #blame(why: string) {
    this.#fault ??= malformed(why)
  }

  #field(name: string, value: string, isCut: boolean) {
    if (isCut) this.#blame(`the field "${sanitizeText(name, 40)}" is too long`)
    this.#fields.set(name, value)
  }

  #file(name: string, part: BusboyFileStream, fileName: string) {
    const { fileFields, fileBytesMax } = this.#rules
    if (!fileFields.includes(name)) {
      this.#blame(
        `the file is in the field "${sanitizeText(name, 40)}"; it belongs in "${fileFields[0]}"`,
      )
      return void part.resume()
    }
    if (!this.#admits()) return void part.resume()
    this.#part = part
    part.on('limit', () => this.#parser.destroy(tooLarge(fileBytesMax)))
    this.#stored = this.#store(part, fileName, this.#stored)
    // A part that nobody takes would hold the form up for ever.
    this.#stored.catch(error => this.#parser.destroy(error))
  }

  #admits(): boolean {
    try {
      this.#rules.admit?.(this.#fields)
      return true
    } catch (error) {
      this.#refusal = { error }
      this.#parser.destroy(new Error('the form was refused'))
      return false
    }
  }

  /** A part takes the place of one that was empty. */
  async #store(
    part: BusboyFileStream,
    fileName: string,
    before: Promise<Stored> | null,
  ): Promise<Stored> {
    const earlier = await before
    if (earlier === null || earlier.size === 0) {
      let size = 0
      await storeBytes(part, this.#path, bytes => {
        size += bytes.byteLength
        this.#hash.update(bytes)
      })
      return { fileName, size }
    }
    for await (const bytes of part) {
      if (bytes.length > 0) this.#blame('it holds more than one file')
    }
    return earlier
  }

  async #read(): Promise<void> {
    const { body, signal } = this.#request
    if (body === null) throw malformed('it is empty')
    const { fileBytesMax } = this.#rules
    try {
      const bytes = Readable.fromWeb(body as ReadableStream)
      const limited = limitedTo(fileBytesMax + AROUND_BYTES_MAX, tooLarge(fileBytesMax))
      await pipeline(bytes, limited, this.#parser)
    } catch (error) {
      if (this.#refusal !== null) throw this.#refusal.error
      if (error instanceof UploadFault) throw error
      if (signal.aborted) throw cutOff()
      // Where the file could not be stored, that is why.
      if (this.#part?.destroyed) await this.#stored
      throw brokenOff(error)
    }
  }
}

function openParser(contentType: string, { fileFields, fileBytesMax }: FormRules) {
  if (!/^multipart\/form-data\b/i.test(contentType)) {
    throw new UploadFault('no-form', 'it is no form of the kind multipart/form-data')
  }
  try {
    return new Busboy({
      headers: { 'content-type': contentType },
      limits: {
        ...{ files: fileFields.length, fileSize: fileBytesMax, fields: FIELDS_MAX },
        ...{ fieldSize: FIELD_BYTES_MAX, headerPairs: PART_HEADERS_MAX },
      },
      isPartAFile: (name, _, fileName) =>
        (name !== undefined && fileFields.includes(name)) || fileName !== undefined,
    })
  } catch (error) {
    throw malformed('its Content-Type names no boundary', error)
  }
}
