/**
 * Whether nobody would choose this local part in earnest: words that fill a form, one character held down, a finger
 * drawn along the keyboard, a long random string. When in doubt it is no junk.
 */
export function isLowQualityLocalPart(local: string): boolean {
  const bare = local.toLowerCase().split('+', 1)[0] ?? ''
  const name = bare.replace(/[._-]/g, '')
  // With separators between them, equal letters may be initials.
  return FILLER.test(name) || /^(.)\1{3,}$/u.test(bare) || isKeyboardWalk(name) || isRandom(name)
}

const FILLER =
  /^(?:(?:(?:my)?tests?(?:ing|er|test|user|mail|email|account|address)?|fake(?:mail|email|name|user)?|foobar|blabla(?:bla)?|abcd?|dummy|dummy(?:mail|email|user))\d{0,6}|no(?:t?)(?:mail|email|one|name|thanks|way|spam)|none|null|nil|undefined|nothing|nada|invalid|unknown|anonym(?:ous)?|idonthave(?:one|it|email|anemail)?|donthave(?:one|email)?|example|sample|whatever|n\/?a)$/

const ROWS = ['qwertyuiop', 'asdfghjkl', 'zxcvbnm', 'qwertzuiop', 'azertyuiop']
const DIGITS = '1234567890'
/** A walk this long in one go is no name, whatever key it starts from; `wert` and `rew` are. */
const WALK_LENGTH_MIN = 6
/** From the left edge of a row, as `asdf` and `qwer`, four keys are plain. */
const EDGE_WALK_LENGTH_MIN = 4

const backwards = (row: string) => [...row].reverse().join('')
/** Three letters that begin a walk in either direction; hardly any name begins so. */
const STEPS: ReadonlySet<string> = new Set(
  ROWS.flatMap(row => [row, backwards(row)]).flatMap(row =>
    Array.from({ length: row.length - 2 }, (_, at) => row.slice(at, at + 3)),
  ),
)

/** Letters along a row, perhaps again and again, perhaps with digits after: `asdf`, `qwertyuiop`, `asdasd`, `qwe123`. */
function isKeyboardWalk(name: string): boolean {
  if (!STEPS.has(name.slice(0, 3))) return false
  const [, letters = '', digits = ''] = /^([a-z]+)(\d*)$/.exec(name) ?? []
  if (letters === '' || (digits !== '' && !DIGITS.startsWith(digits.slice(0, 10)))) return false
  const unit = /^(.{3,}?)\1+$/.exec(letters)?.[1] ?? letters
  const fromEdge = ROWS.some(row => row.startsWith(unit))
  if (fromEdge && unit.length >= EDGE_WALK_LENGTH_MIN) return true
  if (fromEdge && unit.length === 3) return letters.length > 3 || digits.length >= 3
  return unit.length >= WALK_LENGTH_MIN && ROWS.some(row => isAlong(row, unit))
}

const isAlong = (row: string, unit: string) => row.includes(unit) || backwards(row).includes(unit)

/** Shorter strings may be initials, a phone number, a name with a birthday. */
const RANDOM_LENGTH_MIN = 20

/** Letters and digits thrown together, or letters that no tongue can speak. */
function isRandom(name: string): boolean {
  if (name.length < RANDOM_LENGTH_MIN || !/^[a-z0-9]+$/.test(name)) return false
  const changes = name.match(/[a-z](?=\d)|\d(?=[a-z])/g)?.length ?? 0
  const vowels = name.match(/[aeiouy]/g)?.length ?? 0
  const letters = name.replace(/\d/g, '').length
  return changes >= 6 || (letters >= RANDOM_LENGTH_MIN && vowels / letters < 0.15)
}
