import { TextDecoder } from 'node:util'
import iconv from 'iconv-lite'

/** Encodes text; null if a character does not exist in the encoding. */
export type TextEncoding = (text: string) => Uint8Array | null

/** WHATWG labels that iconv-lite knows by another name. */
const ICONV_NAMES: Readonly<Record<string, string>> = {
  'x-mac-cyrillic': 'maccyrillic',
  'iso-8859-8-i': 'iso-8859-8',
}

/**
 * Returns the encoder of a WHATWG label, such as `windows-1252`; null if there is none, as for
 * ISO-2022-JP. Its bytes are read back by `TextDecoder` as the same text, which is checked: the
 * tables of the two differ in some characters.
 */
export function createTextEncoding(label: string): TextEncoding | null {
  const name = ICONV_NAMES[label] ?? label
  if (!iconv.encodingExists(name)) return null
  const decoder = new TextDecoder(label, { ignoreBOM: true })
  return text => {
    const bytes = iconv.encode(text, name, { addBOM: false })
    return decoder.decode(bytes) === text ? bytes : null
  }
}
