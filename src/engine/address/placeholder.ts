/**
 * Returns true for a text that stands for a missing value, such as `n/a` or `(empty)`, and for a
 * text of nothing but space and punctuation.
 */
export function isPlaceholder(text: string): boolean {
  if (text === '') return true
  if (text.length > TEXT_LENGTH_MAX) return false
  if (SPREADSHEET_ERROR.test(text)) return true
  const words = text
    .toLowerCase()
    .replace(AROUND, '')
    .replace(/[\s_]+/g, ' ')
  return words === '' || PLACEHOLDERS.has(words)
}

/** Longer than any placeholder with its brackets. */
const TEXT_LENGTH_MAX = 40

const SPREADSHEET_ERROR = /^\s*#(?:n\/a|null!|name\?|ref!|value!|div\/0!|num!|nv|wert!)\s*$/i

/** Space and punctuation around a word, such as those of `<null>`, `[none]` and `\N` (MySQL). */
const AROUND =
  /^[\s\p{Z}\p{Cf}\p{Pd}"'`()<>[\]{}\\.,;:?*_=~]+|(?<![\s\p{Z}\p{Cf}\p{Pd}"'`()<>[\]{}\\.,;:?*_=~])[\s\p{Z}\p{Cf}\p{Pd}"'`()<>[\]{}\\.,;:?*_=~]+$/gu

const PLACEHOLDERS: ReadonlySet<string> = new Set(
  `n/a, n.a, n/d, n, na, nan, nil, null, none, nul, undefined, empty, blank, missing, unknown,
   not available, not applicable, not provided, not given, none given, none provided, no data,
   no email, no e-mail, no mail, no email address, noemail,
   k.a, k. a, keine, keine angabe, keine e-mail, keine email, leer, unbekannt, nicht vorhanden,
   aucun, aucune, inconnu, vide, non renseigné, pas d'email, ninguno, ninguna, no tiene, sin correo,
   sin email, desconocido, vacío, no disponible, nessuno, nessuna, sconosciuto, vuoto,
   non disponibile, nenhum, nenhuma, não tem, sem email, sem e-mail, vazio, geen, onbekend, leeg,
   brak, nie ma, brak danych, není, žádný, neznámý, нет, пусто, неизвестно, нет данных, не указан,
   немає, yok, bilinmiyor, boş, なし, 無し, 不明, 未登録, 無, 无, 没有, 暂无, 未知, 空, 없음, 미상`
    .split(',')
    .map(word => word.trim()),
)
