/**
 * The most plausible encoding of lines that are not UTF-8: each candidate decodes a sample, and the
 * one whose text looks most like words of one script wins. On a tie the earlier candidate does.
 */
export function legacyEncoding(lines: readonly Uint8Array[]): string {
  const sample = Buffer.concat(lines.slice(0, SAMPLE_LINES)).subarray(0, SAMPLE_BYTES)
  let best = { encoding: 'windows-1252', score: Number.NEGATIVE_INFINITY }
  for (const encoding of CANDIDATES) {
    const score = plausibility(new TextDecoder(encoding).decode(sample))
    if (score > best.score) best = { encoding, score }
  }
  return best.encoding
}

/** A few hundred words settle it, and 14 decodings of them take some milliseconds. */
const SAMPLE_LINES = 200
const SAMPLE_BYTES = 8 * 1024

/** In the order of their frequency in old exports; labels of the WHATWG Encoding Standard. */
const CANDIDATES = [
  'windows-1252',
  'windows-1250',
  'windows-1251',
  'windows-1254',
  'shift_jis',
  'gb18030',
  'big5',
  'euc-kr',
  'euc-jp',
  'koi8-r',
  'macintosh',
  'windows-1253',
  'windows-1255',
  'windows-1256',
  'windows-874',
  'ibm866',
]

type Script = keyof typeof SCRIPTS
const SCRIPTS = {
  latin: /\p{Script=Latin}/u,
  kana: /[\p{Script=Hiragana}\p{Script=Katakana}ー々]/u,
  han: /\p{Script=Han}/u,
  hangul: /\p{Script=Hangul}/u,
  cyrillic: /\p{Script=Cyrillic}/u,
  greek: /\p{Script=Greek}/u,
  // Letters only: the points of Hebrew are what capitals of other scripts turn into.
  hebrew: /[א-ת]/,
  arabic: /\p{Script=Arabic}/u,
  thai: /\p{Script=Thai}/u,
}

/** Letters that are frequent in the languages of Europe; the same bytes read wrongly give rarer ones. */
const USUAL_LATIN = new Set(
  'éèêëàâäáãåçíìîïóòôöõøúùûüñßæœÉÀÄÖÜÇÁÓÚØÅÑąćęłńśźżŁŚŻčďěňřšťůžČŘŠŽőűğışİŞăâșțţ',
)
/** Common characters, family names and words of forms; wrong decodings give rare ones. */
const USUAL_HAN = new Set(
  '的一是不了人我在有他这中大来上国个到说们为子和你地出道也时年得就那要下以生会自着去之过家学对可她里后小么心多天而能好都然没日于起还发成事只作当想看文无开手十用主行方又如前所本见经头面公同三已老从动两长王李张刘陈杨黄赵吴周徐孙马朱胡郭何林罗高郑梁谢宋唐许韩冯邓曹姓名电话邮箱址件司职位性别省市区县号备注客户联系' +
    '這來國個說們為時會過後對還發開無見經頭從動兩長張劉陳楊黃趙吳孫馬鄭謝許韓馮鄧電話郵箱職業區縣號備註戶聯絡係台北灣' +
    '山田中村佐藤鈴木高橋伊渡辺本小林加吉松井上野原口太郎花子美氏様住所番号会社部東京都大阪府県市区町日月年',
)
/** Signs that stand in good text beside words. */
const USUAL_SIGNS = new Set('’‘“”„–—…•€£©®°·«»¿¡№、。・「」（）：，')

function plausibility(text: string): number {
  let score = 0
  let before = { script: null as Script | null, small: false, ascii: true }
  for (const character of text) {
    const ascii = character < '\x80'
    const script = scriptOf(character)
    const large = script !== null && character !== character.toLowerCase()
    if (!ascii) score += worth(character, script)
    if (script && before.script && (!ascii || before.script !== 'latin')) {
      if (!together(script, before.script)) score -= 3
      else if (large && before.small) score -= 3
    }
    // European words seldom have two letters beyond ASCII in a row; other scripts read as Latin do.
    if (script === 'latin' && !ascii && before.script && !before.ascii) score -= 2
    // A sign or a control character grown into a word is a letter read wrongly.
    if (!ascii && !script && before.script && !USUAL_SIGNS.has(character)) score -= 2
    before = { script, small: script !== null && !large, ascii }
  }
  return score
}

function scriptOf(character: string): Script | null {
  if (character < '\x80') return /[a-z]/i.test(character) ? 'latin' : null
  for (const [script, pattern] of Object.entries(SCRIPTS)) {
    if (pattern.test(character)) return script as Script
  }
  return null
}

/** What one character speaks for its encoding, counted per byte: the wide scripts take two. */
function worth(character: string, script: Script | null): number {
  if (/[\uFFFD\p{Cc}\p{Co}\p{Cn}]/u.test(character)) return -10
  if (script === null) return USUAL_SIGNS.has(character) ? 0.5 : -1
  if (script === 'latin') return USUAL_LATIN.has(character) ? 2 : -0.5
  // Half-width katakana is what the letters of other encodings turn into.
  if (script === 'kana') return character >= '\uFF61' ? -0.5 : 5
  if (script === 'han') return USUAL_HAN.has(character) ? 5 : 1
  if (script === 'hangul') return 4
  // Small Cyrillic letters and Hebrew ones share their bytes, but Hebrew has none for я, ы, ь, э, ю.
  if (script === 'hebrew') return 1.6
  return character === character.toLowerCase() ? 1.5 : 1
}

/** Whether two scripts may stand in one word. */
const together = (one: Script, other: Script) =>
  one === other || (JAPANESE.has(one) && JAPANESE.has(other))
const JAPANESE: ReadonlySet<Script> = new Set(['han', 'kana'])
