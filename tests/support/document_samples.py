"""Small documents of every format, as programs write them."""

from __future__ import annotations

import io
import zipfile

W = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
R = 'xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships"'
A = 'xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main"'
P = 'xmlns:p="http://schemas.openxmlformats.org/presentationml/2006/main"'
ODF = (
    'xmlns:office="urn:oasis:names:tc:opendocument:xmlns:office:1.0" '
    'xmlns:text="urn:oasis:names:tc:opendocument:xmlns:text:1.0" '
    'xmlns:xlink="http://www.w3.org/1999/xlink"'
)
DECLARATION = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n'

DOCX_BODY = (
    f"{DECLARATION}<w:document {W} {R}><w:body>"
    '<w:p><w:pPr><w:pStyle w:val="Heading1"/></w:pPr><w:r><w:t>The title</w:t></w:r></w:p>'
    '<w:p><w:r><w:t xml:space="preserve">Click </w:t></w:r>'
    '<w:hyperlink r:id="rId4"><w:r><w:rPr><w:b/></w:rPr><w:t>here</w:t></w:r></w:hyperlink>'
    '<w:r><w:t xml:space="preserve"> to open the </w:t></w:r><w:bookmarkStart w:id="0" w:name="x"/>'
    '<w:r><w:rPr><w:i/></w:rPr><w:t>file</w:t></w:r><w:bookmarkEnd w:id="0"/>'
    "<w:r><w:t>.</w:t></w:r></w:p>"
    "<w:p><w:r><w:t>Name:</w:t></w:r><w:r><w:tab/></w:r><w:r><w:t>The value</w:t></w:r></w:p>"
    '<w:p><w:r><w:fldChar w:fldCharType="begin"/></w:r><w:r><w:instrText>PAGE</w:instrText></w:r>'
    '<w:r><w:fldChar w:fldCharType="end"/></w:r></w:p>'
    "<w:tbl><w:tr><w:tc><w:p><w:r><w:t>A cell</w:t></w:r></w:p></w:tc></w:tr></w:tbl>"
    "<w:sectPr/></w:body></w:document>"
)
PPTX_SLIDE = (
    f"{DECLARATION}<p:sld {P} {A}><p:cSld><p:spTree><p:sp><p:txBody><a:bodyPr/>"
    '<a:p><a:pPr algn="ctr"/><a:r><a:rPr lang="en-US" b="1"/><a:t>Great </a:t></a:r>'
    '<a:r><a:rPr lang="en-US"/><a:t>results this year</a:t></a:r><a:br/>'
    '<a:r><a:rPr lang="en-US"/><a:t>and more</a:t></a:r><a:endParaRPr lang="en-US"/></a:p>'
    "</p:txBody></p:sp></p:spTree></p:cSld></p:sld>"
)
ODT_CONTENT = (
    f'<?xml version="1.0" encoding="UTF-8"?>\n<office:document-content {ODF}><office:body>'
    '<office:text><text:h text:outline-level="1">The title</text:h>'
    '<text:p text:style-name="P1">Some <text:span text:style-name="T1">bold</text:span> words'
    '<text:note text:id="n"><text:note-citation>1</text:note-citation><text:note-body>'
    "<text:p>A footnote</text:p></text:note-body></text:note>.</text:p>"
    '<text:p>One<text:line-break/>two <text:a xlink:href="http://a.kr">a link</text:a></text:p>'
    "</office:text></office:body></office:document-content>"
)
EPUB_PAGE = (
    '<?xml version="1.0" encoding="utf-8"?>\n<!DOCTYPE html>\n'
    '<html xmlns="http://www.w3.org/1999/xhtml" xml:lang="en" lang="en"><head><title>A book</title>'
    "</head><body>\n<p>It was a <em>dark</em> night &amp; it rained.</p>\n</body></html>\n"
)
NCX = "<ncx><navPoint><navLabel><text>Chapter one</text></navLabel></navPoint></ncx>"
OPF = "<package><metadata><dc:language>en</dc:language></metadata></package>"
XLIFF_1 = (
    '<?xml version="1.0" encoding="UTF-8"?>\n'
    '<xliff xmlns="urn:oasis:names:tc:xliff:document:1.2" version="1.2">\n'
    '  <file original="a" source-language="en" datatype="html"><body>\n'
    '    <trans-unit id="1"><source>Open the <g id="1">file</g> <x id="2"/>now</source>'
    "</trans-unit>\n"
    '    <trans-unit id="2"><source>Done</source><target>Fertig</target></trans-unit>\n'
    '    <trans-unit id="3" translate="no"><source>ID</source></trans-unit>\n'
    "  </body></file>\n</xliff>\n"
)
XLIFF_2 = (
    '<xliff xmlns="urn:oasis:names:tc:xliff:document:2.0" version="2.0" srcLang="en">'
    '<file id="f"><unit id="u"><segment><source>Save <pc id="1">all</pc> files</source>'
    "</segment></unit></file></xliff>"
)
PO = (
    '# A comment\nmsgid ""\nmsgstr ""\n"Language: de\\n"\n"Plural-Forms: nplurals=2; plural=(n '
    '!= 1);\\n"\n\n#: a.c:1\n#, c-format\nmsgid "Cannot open %s"\nmsgstr ""\n\n'
    'msgctxt "menu"\nmsgid "Open"\nmsgstr "Öffnen"\n\n'
    '#. many\nmsgid "%d file"\nmsgid_plural "%d files"\nmsgstr[0] ""\nmsgstr[1] ""\n\n'
    'msgid ""\n"Two\\n"\n"lines\\n"\nmsgstr ""\n\n#~ msgid "Old"\n#~ msgstr "Alt"\n'
)  # fmt: skip
SRT = (
    "1\n00:00:01,000 --> 00:00:02,500\nWe were on the way\n\n"
    "2\n00:00:02,600 --> 00:00:04,000\nto the <i>old house</i>.\n\n"
    "3\n00:00:06,000 --> 00:00:08,000\n- Hello.\n- Good evening.\n\n"
    "4\n00:00:09,000 --> 00:00:11,000\n{\\an8}A cue of\ntwo lines.\n"
)
VTT = (
    "WEBVTT - title\n\nNOTE a comment\n\nid\n00:01.000 --> 00:02.500 align:start\n"
    "<v Roger>Never &amp; ever\n\n00:03.000 --> 00:04.000\n<c.yellow>Really?</c>\n"
)
MARKDOWN = (
    "---\ntitle: x\n---\n# The *title*\n\nA paragraph with\na [link](a.md), `code` and "
    "**bold** text.\n"
    "\n> - An item &c\n>   that goes on\n\n```sh\nls words\n```\n\n| a head | b |\n|---|---|\n"
    "| one cell | two \\* |\n\n<p>Some <b>HTML</b></p>\n\n[label]: http://a.kr\n\n    code words\n"
)
JSON = (
    '{\n  "title": "The \\"page\\" title",\n  "id": "the_page", "list": ["one word", 3, null, "https://a"],'
    '\n  "rich": "Click <b>here</b>, {name}!"\n}\n'
)
YAML = (
    "# A comment\nen:\n  title: The page title  # shown\n  'quoted key': 'It''s here'\n"
    '  double: "a \\"word\\" \\u00e9"\n  block: |\n    Line one\n    line two\n  folded: >\n'
    "    Some long\n    text\n  yes: true\n  list: [first word, 3]\n  id: user_name\n"
)
HTML = (
    '<!doctype html>\n<html lang="en"><head><meta charset=utf-8><title>A page</title></head>\n'
    "<body><p>Click <a href='x'>here</a> or run <code>ls</code>.</p><br><p>Two\n  lines</p></body>"
)
TXT = "One line\r\n\r\n  another line \nlast"
TEXTS = {
    "a.txt": TXT, "a.html": HTML, "a.md": MARKDOWN, "a.srt": SRT, "a.vtt": VTT, "a.po": PO,
    "a.json": JSON, "a.yaml": YAML, "a.xlf": XLIFF_1, "b.xlf": XLIFF_2,
}  # fmt: skip


def make_zip(parts: dict[str, str | bytes]) -> bytes:
    """Return an archive; the first part is not compressed, as in EPUB."""
    output = io.BytesIO()
    with zipfile.ZipFile(output, "w", zipfile.ZIP_DEFLATED) as file:
        for index, (name, content) in enumerate(parts.items()):
            kind = zipfile.ZIP_STORED if index == 0 else zipfile.ZIP_DEFLATED
            file.writestr(zipfile.ZipInfo(name, (2024, 1, 1, 0, 0, 0)), content, kind)
    return output.getvalue()


ARCHIVES = {
    "a.docx": make_zip(
        {"[Content_Types].xml": "<Types/>", "word/document.xml": DOCX_BODY,
         "word/media/image1.png": b"\x89PNG", "word/styles.xml": "<styles/>"}
    ),
    "a.pptx": make_zip(
        {"[Content_Types].xml": "<Types/>", "ppt/slides/slide1.xml": PPTX_SLIDE}
    ),
    "a.odt": make_zip(
        {"mimetype": "application/vnd.oasis.opendocument.text", "content.xml": ODT_CONTENT}
    ),
    "a.epub": make_zip(
        {"mimetype": "application/epub+zip", "META-INF/container.xml": "<container/>",
         "OEBPS/a.xhtml": EPUB_PAGE, "OEBPS/toc.ncx": NCX, "OEBPS/book.opf": OPF}
    ),
}  # fmt: skip
SAMPLES = {**{name: text.encode() for name, text in TEXTS.items()}, **ARCHIVES}
