import { describe, expect, test } from 'vitest'
import { REPLY_RULES } from '../../../src/engine/smtp/classify-reply.ts'
import { phrase } from '../../../src/engine/smtp/reply-rules/grammar.ts'
import { LANGUAGES, UNSPACED } from '../../../src/engine/smtp/reply-rules/languages.ts'
import { ENGLISH, type Lexicon } from '../../../src/engine/smtp/reply-rules/lexicon.ts'
import { plainText } from '../../../src/engine/smtp/reply-rules/reply-text.ts'
import { toSentence } from '../../../src/engine/smtp/reply-rules/sentence.ts'

const sentenceOf = (text: string) => toSentence(plainText({ code: 550, enhanced: null, text }))

describe('the sentence of a reply', () => {
  test.each([
    ['in any language the same', 'User unknown', ' box missing'],
    ['German', 'Empfänger unbekannt', ' box missing'],
    ['German, with ae', 'EMPFAENGER EXISTIERT NICHT', ' box missing'],
    ['French', "L'utilisateur n'existe pas", ' box missing'],
    ['Spanish', 'El buzón no existe', ' box missing'],
    ['Italian', 'Casella inesistente', ' box missing'],
    ['Portuguese', 'Usuário não encontrado', ' box missing'],
    ['Dutch', 'Deze mailbox bestaat niet', ' box missing'],
    ['Polish', 'Skrzynka nie istnieje', ' box missing'],
    ['Czech', 'Uživatel neexistuje', ' box missing'],
    ['Russian', 'Пользователь не найден', ' box missing'],
    ['Turkish', 'Kullanıcı bulunamadı', ' box missing'],
    ['Chinese', '该用户不存在', ' box missing'],
    ['Japanese', '宛先が存在しません', ' box missing'],
    ['Korean', '사용자를 찾을 수 없습니다', ' box missing'],
  ])('%s: %s', (_, text, sentence) => {
    expect(sentenceOf(text)).toBe(sentence)
  })

  test.each([
    ['a negation before', 'mailbox could not be found', ' box missing'],
    ['a negation behind', 'Postfach existiert hier nicht', ' box missing'],
    ['a short negation', "mailbox doesn't exist", ' box missing'],
    ['not active', 'account is not currently active', ' box closed'],
    ['no longer', 'the mailbox is no longer available', ' box missing'],
    ['a negation of something else', 'not a user here', ' not box here'],
  ])('%s: %s', (_, text, sentence) => {
    expect(sentenceOf(text)).toBe(sentence)
  })

  test.each([
    ['the sender', 'Sender address rejected', ' sender refused'],
    ['the sender, behind', 'domain of sender not found', ' sender missing'],
    ['the address of who connects', 'IP address unknown', ' ip missing'],
    ['an address in the text', '192.0.2.1 is unknown', ' ip missing'],
    ['a host', 'Your mail server is unknown', ' yours missing'],
    ['the mailbox of the sender', 'your mailbox is full', ' sender full'],
    ['the recipient', 'Recipient address rejected', ' box refused'],
    ['the domain of the recipient', 'recipient domain not found', ' domain missing'],
  ])('a noun phrase tells whose it is: %s', (_, text, sentence) => {
    expect(sentenceOf(text)).toBe(sentence)
  })

  test.each([
    ['a letter is missing', 'user unkown', ' box missing'],
    ['a letter is wrong', 'recepient unknown', ' box missing'],
    ['a letter is added', 'mailbbox unknown', ' box missing'],
    ['letters are swapped', 'Invaild recipeint', ' missing box'],
    ['short words stay', 'usor known', ' _ exist'],
    ['another word', 'Requested action', ''],
  ])('a misspelled word: %s', (_, text, sentence) => {
    expect(sentenceOf(text)).toBe(sentence)
  })

  test.each([
    ['host names and URLs', 'mx.unknown.example see https://blocked.example/user', ' _ _ _'],
    ['IDs', 'unknown5 user7', ' _ _'],
    ['clauses', 'User unknown; later.', ' box missing . later .'],
    ['nothing', '', ''],
  ])('%s: %s', (_, text, sentence) => {
    expect(sentenceOf(text)).toBe(sentence)
  })

  test('has at most 150 words, however long the text', () => {
    const words = toSentence('user unknown '.repeat(10_000)).trim().split(' ')
    expect(words).toHaveLength(150)
  })
})

describe('a phrase of the grammar', () => {
  test.each([
    ['box missing', ' box missing list', true],
    ['box missing', ' box list missing', false],
    ['box .. missing', ' box _ list missing', true],
    ['box .. missing', ' box _ _ _ _ missing', false],
    ['box .. missing', ' box . missing', false],
    ['box .. missing', ' box sender missing', false], // A noun between them is what is missing.
    ['box .... missing', ' box _ _ _ _ _ sender missing', true],
    ['box .? missing', ' box . missing', true],
    ['(box|addr) missing', ' addr missing', true],
    ['no such? box', ' no box', true],
    ['^ missing box', ' missing box', true],
    ['^ missing box', ' _ missing box', false],
    ['box missing $', ' box missing', true],
    ['box missing $', ' box missing _', false],
    ['(^|.) closed', ' box . closed', true],
    ['(^|.) closed', ' closed', true],
    ['(^|.) closed', ' box closed', false],
    ['no box (here|$)', ' no box', true],
    ['no box (here|$)', ' no box here', true],
    ['no box (here|$)', ' no box list', false],
    ['list', ' listed', false],
  ])('"%s" in "%s": %s', (text, sentence, matches) => {
    expect(phrase(text).test(sentence)).toBe(matches)
  })

  test('uses only words that a sentence can have', () => {
    const words = new Set([...Object.keys(ENGLISH), 'addr', 'yours'])
    const used = REPLY_RULES.flatMap(({ sentence }) =>
      (sentence?.source ?? '').replaceAll(/\(\?! [^)]*\)|\[a-z_\]/g, '').match(/[a-z]+/g),
    )
    expect(used.filter(word => word !== null && !words.has(word))).toEqual([])
  })
})

describe.each(Object.entries({ English: ENGLISH, ...LANGUAGES, ...UNSPACED }))(
  'the terms of %s',
  (_, lexicon: Lexicon) => {
    const terms = Object.values(lexicon).flatMap(list => list.split(', '))

    test('stand for one concept each', () => {
      expect(terms.filter((term, index) => terms.indexOf(term) !== index)).toEqual([])
    })

    test('are in lower case without accents', () => {
      const plain = (term: string) => plainText({ code: 550, enhanced: null, text: term })
      expect(terms.filter(term => plain(term) !== term)).toEqual([])
    })
  },
)
