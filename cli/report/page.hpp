// A page: an answer as one HTML file that asks for nothing else, from the parts in
// cli/report/page/.
//
// What the page shows is one JSON value in it, which its script reads; the answer's text stands in
// it too, for readers without scripts. Names of models and layers come from files that anybody may
// have written: in the JSON no character can end the element that holds it, the text is escaped,
// the script never takes a name for markup, and the page's policy lets no other script run.
#pragma once

#include <string>
#include <string_view>

#include "cli/output/rendered_answer.hpp"

namespace stowage {

struct PageContent {
  std::string title;   ///< "resnet50, batch 64, training with sgd, fp32"
  Json::Object shown;  ///< what is drawn; `answer` (the command's JSON) is added to it
  const RenderedAnswer& answer;
};

/// The whole file. The same content gives the same bytes.
[[nodiscard]] std::string page_text(PageContent content);

/// Whether a file's name says that it is a page: it ends in .html or .htm.
[[nodiscard]] bool names_page(std::string_view path);

}  // namespace stowage
