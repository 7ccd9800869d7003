/**
 * Replaces characters that look like ASCII by it, for suggestions: invisible characters are removed,
 * typographic hyphens, apostrophes and full stops become those of the keyboard, and so do Cyrillic
 * and Greek letters beside Latin ones (Unicode TR 39).
 */
export function replaceLookAlikes(text: string): string {
  const plain = text
    .replace(INVISIBLE, '')
    .replace(/[‐‑‒–—―−﹘﹣]/g, '-')
    .replace(/[‘’ʼ′´]/g, "'")
    .replace(/[。｡․]/g, '.')
  return /[a-z]/i.test(plain) ? plain.replace(OTHER_LETTER, toLatin) : plain
}

const INVISIBLE = /[\p{Cf}\p{DI}]/gv

const OTHER = 'аеорсухіјѕԁӏһԛԝοανιıɡАВЕКМНОРСТУХ'
const LATIN = 'aeopcyxijsdlhqwoaviigABEKMHOPCTYX'
const OTHER_LETTER = new RegExp(`[${OTHER}]`, 'g')
const toLatin = (letter: string) => LATIN.charAt(OTHER.indexOf(letter))
